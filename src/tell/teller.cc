#include "tell/teller.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <expected>
#include <string_view>

#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/open_file.h"
#include "sys/passing.h"
#include "tell/teller_process.h"

namespace trainyard::tell {

Result<Teller> Teller::start(const TellerOptions& options) {
  auto ends = sys::packet_pair();
  if (!ends) return std::unexpected(std::move(ends.error()).in("cannot tell others"));
  const auto directory = sys::open_directory(options.run_directory, {});
  const pid_t pid = ::fork();
  if (pid < 0) return std::unexpected(sys::system_error("cannot tell others", errno));
  if (pid == 0) {
    TellerOptions own = options;
    // A task may put another run at the path of this one, and cannot move this process there.
    if (directory && ::fchdir(directory->get()) == 0) own.run_directory = ".";
    become_teller(ends->second.get(), std::move(own));
  }
  return Teller(pid, std::move(ends->first), options.patience_at_end);
}

Teller::Teller(Teller&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      words_(std::move(other.words_)),
      patience_(other.patience_),
      unsent_(std::move(other.unsent_)),
      lines_(other.lines_),
      begun_(other.begun_),
      finished_(other.finished_),
      ended_(other.ended_) {}

Teller::~Teller() {
  if (pid_ == 0) return;
  words_.close();
  const auto pid = static_cast<pid_t>(pid_);
  // One that has not begun ends at once, and one that has may take a while: nobody waits for it.
  if (!begun_) ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, begun_ ? WNOHANG : 0);
}

void Teller::begin(const RunName& run, const std::string& if_it_dies) {
  begun_ = true;
  say(pack(BeginWord{.run = run, .if_it_dies = if_it_dies}));
}

void Teller::post(const std::string& what, const std::string& body) {
  say(pack(PostWord{.what = what, .body = body}));
}

void Teller::mail(model::GroupIndex group) { say(pack(MailWord{.group = group})); }

void Teller::finish(const std::string& what, const std::string& body) {
  finished_ = true;
  say(pack(FinishWord{.what = what, .body = body}));
}

void Teller::say(std::string word) {
  if (ended_ || word.size() > kWordBytesMax) return;
  // The oldest message matters least: a user who is notified of the end knows of the others.
  if (unsent_.size() == kUnsentMax) unsent_.pop_front();
  unsent_.push_back(std::move(word));
  hand_over();
}

void Teller::hand_over() {
  while (!unsent_.empty()) {
    const std::string& word = unsent_.front();
    const ssize_t sent =
        ::send(words_.get(), word.data(), word.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (sent < 0) return unsent_.clear();
    unsent_.pop_front();
  }
}

void Teller::listen(std::vector<std::string>& lines) {
  std::string bytes(kWordBytesMax, '\0');
  while (!ended_) {
    const ssize_t got = sys::receive(words_.get(), bytes, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got <= 0) {
      ended_ = true;
      if (!finished_ && lines_ == 0)
        lines.emplace_back("the process that sends notifications has died");
      return;
    }
    if (++lines_ <= kLinesMax) {
      lines.emplace_back(std::string_view(bytes).substr(0, static_cast<std::size_t>(got)));
    }
  }
}

std::vector<std::string> Teller::hear() {
  hand_over();
  std::vector<std::string> lines;
  listen(lines);
  return lines;
}

bool Teller::ends_within(Duration most) const {
  pollfd closed{.fd = words_.get(), .events = 0, .revents = 0};
  return ended_ || ::poll(&closed, 1, static_cast<int>(most.count())) > 0;
}

std::vector<std::string> Teller::wait() {
  using Clock = std::chrono::steady_clock;
  constexpr Duration kMore{1'000};
  const auto until = Clock::now() + patience_ + kMore;
  std::vector<std::string> lines;
  while (!ended_ && Clock::now() < until) {
    hand_over();
    pollfd waiting{.fd = words_.get(), .events = POLLIN, .revents = 0};
    if (!unsent_.empty()) waiting.events |= POLLOUT;
    const auto left = std::chrono::ceil<Duration>(until - Clock::now());
    ::poll(&waiting, 1, static_cast<int>(left.count()));
    listen(lines);
  }
  if (!ended_)
    lines.emplace_back("the process that sends notifications did not exit in time, and was killed");
  ::kill(static_cast<pid_t>(pid_), SIGKILL);
  ::waitpid(static_cast<pid_t>(pid_), nullptr, 0);
  pid_ = 0;
  return lines;
}

}  // namespace trainyard::tell

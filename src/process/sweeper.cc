#include "process/sweeper.h"

#include <cerrno>
#include <csignal>

#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "sys/fork.h"
#include "sys/packing.h"
#include "sys/passing.h"
#include "sys/remove_below.h"

namespace trainyard::process {
namespace {

/// A path is no longer than PATH_MAX, and an answer names a few of them.
constexpr std::size_t kPacketMax = std::size_t{64} << 10;
/// The maximum size of the text of a failure: an answer is one packet.
constexpr std::size_t kFailureMax = 4096;

std::string pack_removed(const sys::Removed& removed) {
  sys::Packing packing;
  packing.add(removed.bytes.count);
  packing.add(static_cast<std::uint32_t>(removed.failed.size()));
  for (const std::string& why : removed.failed) {
    packing.add(std::string_view(why).substr(0, kFailureMax));
  }
  return std::move(packing).take();
}

Sweeper::Swept unpack_swept(std::uint32_t number, std::string_view packet) {
  sys::Unpacking packed(packet);
  Sweeper::Swept swept{
      .number = number, .bytes = Bytes{packed.number<std::int64_t>()}, .failed = {}};
  const std::size_t failed = packed.count();
  for (std::size_t i = 0; i < failed; ++i) swept.failed.push_back(packed.text());
  return swept;
}

std::string failure_text(const Sweeper::Options& options, std::string_view directory,
                         std::string_view why) {
  return fmt::format("'{}/{}': {}", options.root, directory, why);
}

/// The whole life of the process. Deletes nothing where it has not `entered` the root.
void sweep_directories(const Sweeper::Options& options, bool entered) {
  std::string packet(kPacketMax, '\0');
  while (true) {
    const ssize_t got = ::recv(sys::kLoneSocket, packet.data(), packet.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    const std::string directory = packet.substr(0, static_cast<std::size_t>(got));
    sys::Removed removed;
    if (entered) {
      removed = sys::remove_below({.root = options.root,
                                   .is_working_directory = true,
                                   .directory = directory,
                                   .kept = options.kept});
    } else {
      removed.failed = {failure_text(options, directory, "the run directory cannot be entered")};
    }
    const std::string answer = pack_removed(removed);
    if (::send(sys::kLoneSocket, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) return;
  }
}

}  // namespace

Sweeper::~Sweeper() {
  if (pid_ != 0) leave();
}

bool Sweeper::start() {
  auto ends = sys::packet_pair();
  if (!ends) return false;
  const pid_t yard = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return false;
  if (pid == 0) {
    const bool entered = ::fchdir(root_.get()) == 0;
    const bool alone = sys::become_alone({.socket = ends->second.get(), .name = "trainyard-sweep"});
    // The process may have lost its parent before it was set to end with it.
    if (alone && ::getppid() == yard) sweep_directories(options_, entered);
    ::_exit(0);
  }
  pid_ = pid;
  socket_ = std::move(ends->first);
  return true;
}

void Sweeper::sweep(std::uint32_t number, const std::string& directory) {
  asked_.push_back({.number = number, .directory = directory});
  hand_over();
}

void Sweeper::hand_over() {
  if (pid_ == 0 && (asked_.empty() || !start())) return;
  while (handed_over_ < asked_.size()) {
    const std::string& path = asked_[handed_over_].directory;
    const ssize_t sent =
        ::send(socket_.get(), path.data(), path.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    // No room yet, or the other end is closed: hear() notices that.
    if (sent < 0) return;
    ++handed_over_;
  }
}

std::vector<Sweeper::Swept> Sweeper::hear() {
  std::vector<Swept> heard;
  if (asked_.empty()) return heard;
  if (pid_ == 0 && !start()) {
    give_up(heard, "no process can be started to delete it");
    return heard;
  }
  std::string packet(kPacketMax, '\0');
  while (!asked_.empty()) {
    hand_over();
    const ssize_t got = sys::receive(socket_.get(), packet, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (got <= 0) {
      leave();
      give_up(heard, "the process that deletes it was killed");
      break;
    }
    heard.push_back(unpack_swept(
        asked_.front().number, std::string_view(packet).substr(0, static_cast<std::size_t>(got))));
    asked_.pop_front();
    --handed_over_;
  }
  return heard;
}

std::vector<Sweeper::Swept> Sweeper::wait(Duration most) {
  std::vector<Swept> heard = hear();
  if (!heard.empty() || asked_.empty()) return heard;
  pollfd waiting{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  ::poll(&waiting, 1, static_cast<int>(most.count()));
  return hear();
}

/// Does not wait for the process, which may take as long to exit as its disk does.
void Sweeper::leave() {
  socket_.close();
  const auto pid = static_cast<pid_t>(std::exchange(pid_, 0));
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, WNOHANG);
  handed_over_ = 0;
}

/// The first is what it died of, and the others wait for another process.
void Sweeper::give_up(std::vector<Swept>& heard, std::string_view why) {
  const Asked first = std::move(asked_.front());
  asked_.pop_front();
  heard.push_back({.number = first.number,
                   .bytes = {},
                   .failed = {failure_text(options_, first.directory, why)}});
}

}  // namespace trainyard::process

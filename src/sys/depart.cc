#include "sys/depart.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <expected>
#include <optional>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/terminal.h"
#include "sys/this_process.h"

namespace trainyard::sys {
namespace {

constexpr std::size_t kWordMax = 4096;
/// The shell's base of an exit code for a process that was killed by a signal.
constexpr int kSignalled = 128;

struct Ends {
  Descriptor read;
  Descriptor write;
};

std::optional<Ends> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  return Ends{.read = Descriptor(ends[0]), .write = Descriptor(ends[1])};
}

/// The next bytes; empty at the end, and where there is nothing that could be read.
std::string read_some(const Descriptor& from) {
  std::array<char, kWordMax> bytes{};
  ssize_t got = 0;
  do {
    got = ::read(from.get(), bytes.data(), bytes.size());
  } while (got < 0 && errno == EINTR);
  return {bytes.data(), static_cast<std::size_t>(got > 0 ? got : 0)};
}

/// The one descriptor of the first process that this one keeps, for its word: a lock, or the end of
/// a pipe, that a shell has open is not held by the process that goes on.
constexpr int kWordDescriptor = 3;

Descriptor let_go_of_terminal(const Descriptor& word, const Descriptor& prints) {
  ::setsid();
  const Descriptor nowhere(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (nowhere.is_open()) ::dup2(nowhere.get(), STDIN_FILENO);
  print_to(prints);
  ::dup2(word.get(), kWordDescriptor);
  ::fcntl(kWordDescriptor, F_SETFD, FD_CLOEXEC);
  ::close_range(kWordDescriptor + 1, ~0U, 0);
  return Descriptor(kWordDescriptor);
}

/// Shows what is printed until the other end of `word` is closed: the fork alone has it.
std::string hear(const Descriptor& word, const Descriptor& prints) {
  std::string heard;
  bool shows = true;
  while (true) {
    std::array<pollfd, 2> ready{pollfd{.fd = word.get(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = prints.get(), .events = POLLIN, .revents = 0}};
    if (::poll(ready.data(), shows ? 2 : 1, -1) < 0) continue;
    if (shows && ready[1].revents != 0) {
      const std::string text = read_some(prints);
      shows = !text.empty();
      // A piece of what this program prints, which is escaped, and may end within a character.
      static_cast<void>(write_text(kStandardError, text));
      continue;
    }
    const std::string more = read_some(word);
    if (more.empty()) return heard;
    heard += more;
  }
}

/// Shows all that was printed; does not wait for other processes that hold the pipe.
void show_the_rest(const Descriptor& prints) {
  const int flags = ::fcntl(prints.get(), F_GETFL);
  ::fcntl(prints.get(), F_SETFL, flags | O_NONBLOCK);
  for (std::string text = read_some(prints); !text.empty(); text = read_some(prints)) {
    static_cast<void>(write_text(kStandardError, text));
  }
}

int exit_code_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? kSignalled + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

void Departure::begun(std::string_view word, const Descriptor& log) {
  print_to(log);
  // The first process may have been killed: then no one needs the word.
  static_cast<void>(write_text(word_.get(), word.substr(0, kWordMax)));
  word_.close();
}

bool Departure::is_awaited() const {
  // The process that would read it has closed its end.
  pollfd end{.fd = word_.get(), .events = 0, .revents = 0};
  return ::poll(&end, 1, 0) <= 0;
}

Result<std::variant<Departure, Departed>> depart() {
  std::optional<Ends> word = make_pipe();
  std::optional<Ends> prints = make_pipe();
  constexpr std::string_view kFailed = "cannot fork a process that goes on";
  if (!word || !prints) return std::unexpected(system_error(kFailed, errno));
  const pid_t child = ::fork();
  if (child < 0) return std::unexpected(system_error(kFailed, errno));
  if (child == 0) {
    Descriptor kept = let_go_of_terminal(word->write, prints->write);
    // They are closed, or have become that one.
    for (Ends* const ends : {&*word, &*prints}) {
      static_cast<void>(ends->read.release());
      static_cast<void>(ends->write.release());
    }
    return Departure(std::move(kept));
  }
  word->write.close();
  prints->write.close();
  Departed departed{.word = hear(word->read, prints->read)};
  // A process that has not begun has nothing to go on with.
  if (departed.word.empty()) departed.exit_code = exit_code_of(child);
  show_the_rest(prints->read);
  return departed;
}

}  // namespace trainyard::sys

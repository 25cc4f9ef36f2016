#include "process/promise_board.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/result.h"
#include "model/promises.h"
#include "sys/clock.h"
#include "sys/descriptor.h"
#include "sys/environment.h"
#include "sys/files.h"
#include "sys/token.h"
#include "wire/promises_text.h"

namespace trainyard::process {
namespace {

/// Suffix of a file that is being made: no other run reads it before it is locked.
constexpr std::string_view kBeingMade = ".new";
/// The line that seals a text, and the text.
constexpr std::size_t kFileBytesMax = wire::kPromiseBytesMax + 256;

struct flock whole_file(short kind) {
  return {.l_type = kind, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0, .l_pid = 0};
}

/// True if a process holds the lock. Does not take it, so no other process has to wait.
bool is_locked(const sys::Descriptor& file) {
  struct flock lock = whole_file(F_RDLCK);
  return ::fcntl(file.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool is_ticket(std::string_view name) {
  constexpr std::size_t kLongest = 64;
  return !name.empty() && name.size() <= kLongest && !name.ends_with(kBeingMade) &&
         std::ranges::all_of(name, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == '-';
         });
}

/// The older is the smaller, also as a text.
std::string fresh_ticket() {
  constexpr std::size_t kRandom = 12;
  return fmt::format("{:016}-{}", sys::unix_milliseconds(), sys::random_token().substr(0, kRandom));
}

/// A directory for everybody, in which only who made a file may take it away.
Result<void> make_board_directory(const std::string& directory) {
  constexpr mode_t kEverybodys = 01777;
  if (::mkdir(directory.c_str(), kEverybodys) == 0) {
    // Whatever our umask is.
    static_cast<void>(::chmod(directory.c_str(), kEverybodys));
    return {};
  }
  if (errno == EEXIST) return {};
  return std::unexpected(sys::system_error("cannot make '" + directory + "'", errno));
}

}  // namespace

std::vector<std::string> PromiseBoard::usual_directories() {
  if (const std::optional<std::string> chosen = sys::variable("TRAINYARD_PROMISES")) {
    return *chosen == "off" ? std::vector<std::string>{} : std::vector{*chosen};
  }
  return {"/dev/shm/trainyard", "/run/lock/trainyard"};
}

PromiseBoard::PromiseBoard(std::string directory, std::string ticket, sys::Descriptor file)
    : directory_(std::move(directory)),
      ticket_(std::move(ticket)),
      file_(std::move(file)),
      owner_(::getpid()) {}

Result<PromiseBoard> PromiseBoard::open(const std::vector<std::string>& directories) {
  std::string why;
  for (const std::string& directory : directories) {
    Result<PromiseBoard> board = open_in(directory);
    if (board) return board;
    why += (why.empty() ? "" : "; ") + board.error().message;
  }
  return std::unexpected(Error{why});
}

std::vector<PromiseBoard::Other> PromiseBoard::look_at(
    const std::vector<std::string>& directories) {
  for (const std::string& directory : directories) {
    struct stat seen{};
    if (::stat(directory.c_str(), &seen) != 0) continue;
    return PromiseBoard(directory, {}, sys::Descriptor()).read();
  }
  return {};
}

/// A file with the lock and with room for what it may grow to: what is promised must not fail for
/// want of it.
Result<sys::Descriptor> PromiseBoard::make_file(const std::string& being_made) {
  constexpr mode_t kReadByAll = 0644;
  sys::Descriptor file(
      ::open(being_made.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kReadByAll));
  if (!file.is_open()) {
    return std::unexpected(sys::system_error("cannot make '" + being_made + "'", errno));
  }
  static_cast<void>(::fchmod(file.get(), kReadByAll));
  struct flock lock = whole_file(F_WRLCK);
  const bool ready =
      ::fcntl(file.get(), F_OFD_SETLK, &lock) == 0 &&
      (::fallocate(file.get(), FALLOC_FL_KEEP_SIZE, 0, kFileBytesMax) == 0 || errno == EOPNOTSUPP);
  if (ready) return file;
  Error error = sys::system_error("cannot write '" + being_made + "'", errno);
  ::unlink(being_made.c_str());
  return std::unexpected(std::move(error));
}

Result<PromiseBoard> PromiseBoard::open_in(const std::string& directory) {
  Result<void> made = make_board_directory(directory);
  if (!made) return std::unexpected(std::move(made.error()));
  const std::string ticket = fresh_ticket();
  const std::string path = directory + "/" + ticket;
  const std::string being_made = path + std::string(kBeingMade);
  Result<sys::Descriptor> file = make_file(being_made);
  if (!file) return std::unexpected(std::move(file.error()));
  PromiseBoard board(directory, ticket, *std::move(file));
  board.write({.ticket = ticket});
  if (board.write_failed_ || ::rename(being_made.c_str(), path.c_str()) != 0) {
    Error error = sys::system_error("cannot write '" + being_made + "'", errno);
    ::unlink(being_made.c_str());
    return std::unexpected(std::move(error));
  }
  board.remove_what_is_left();
  return board;
}

/// Makes the file of our ticket again. Only this process locks the new file: guard and keeper lock
/// the one that was deleted.
void PromiseBoard::make_again() {
  const std::string path = directory_ + "/" + ticket_;
  const std::string being_made = path + std::string(kBeingMade);
  Result<void> made = make_board_directory(directory_);
  Result<sys::Descriptor> file =
      made ? make_file(being_made) : std::unexpected(std::move(made.error()));
  if (file) {
    if (!deleted_.is_open()) deleted_ = std::exchange(file_, sys::Descriptor());
    file_ = *std::move(file);
    write(model::Promises(said_));
    if (!write_failed_ && ::rename(being_made.c_str(), path.c_str()) == 0) return;
    file = std::unexpected(sys::system_error("cannot write '" + being_made + "'", errno));
    ::unlink(being_made.c_str());
  }
  if (std::exchange(write_failed_, true)) return;
  notes_.push_back(
      fmt::format("'{}' was deleted: other runs on this machine do not see what this one has "
                  "reserved: {}",
                  path, file.error().message));
}

/// Removes the files of our yards that are gone with all their tasks. A file gets its name only
/// once it is locked, so an unlocked one belongs to no process.
void PromiseBoard::remove_what_is_left() const {
  std::size_t looked = 0;
  for (const std::string& name : sys::names_in(directory_)) {
    if (!is_ticket(name) || name == ticket_ || ++looked > 4 * kFilesMax) continue;
    const std::string path = directory_ + "/" + name;
    const sys::Descriptor file(
        ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat seen{};
    const bool ours = file.is_open() && ::fstat(file.get(), &seen) == 0 && S_ISREG(seen.st_mode) &&
                      seen.st_uid == ::geteuid();
    if (ours && !is_locked(file)) ::unlink(path.c_str());
  }
}

void PromiseBoard::write(const model::Promises& promises) {
  said_ = promises;
  std::string text = wire::to_text(promises);
  if (text.size() > wire::kPromiseBytesMax) {
    // Cards beyond any machine's: what is named first counts.
    text.resize(text.rfind('\n', wire::kPromiseBytesMax - 1) + 1);
  }
  std::string seal = wire::seal_of(text, ++sequence_);
  const std::array<iovec, 2> parts{{{.iov_base = seal.data(), .iov_len = seal.size()},
                                    {.iov_base = text.data(), .iov_len = text.size()}}};
  const ssize_t written = ::pwritev(file_.get(), parts.data(), static_cast<int>(parts.size()), 0);
  const int error = errno;
  // Reads of other files after this must be newer than our own write is to them.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const bool failed = std::cmp_not_equal(written, seal.size() + text.size());
  if (failed && !std::exchange(write_failed_, true)) {
    notes_.push_back(fmt::format(
        "{}: other runs on this machine may not see what this one has reserved",
        sys::system_error("cannot write '" + directory_ + "/" + ticket_ + "'", error).message));
  }
  if (!failed) write_failed_ = false;
}

PromiseBoard::Known* PromiseBoard::open_other(const std::string& name) {
  if (const auto found = known_.find(name); found != known_.end()) {
    struct stat known{};
    const bool is_there = ::fstat(found->second.file.get(), &known) == 0 && known.st_nlink > 0;
    if (is_there) return &found->second;
    known_.erase(found);
  }
  const std::string path = directory_ + "/" + name;
  sys::Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat seen{};
  if (!file.is_open() || ::fstat(file.get(), &seen) != 0 || !S_ISREG(seen.st_mode)) return nullptr;
  return &known_.try_emplace(name, Known{.file = std::move(file), .user = seen.st_uid})
              .first->second;
}

std::optional<model::Promises> PromiseBoard::read_other(const std::string& name, Known& known) {
  std::string why = "it is not whole";
  for (int i = 0; i < kReadsMax; ++i) {
    struct stat seen{};
    if (::fstat(known.file.get(), &seen) != 0) break;
    if (std::cmp_greater(seen.st_size, kFileBytesMax)) {
      why = fmt::format("it has {} bytes", seen.st_size);
      break;
    }
    std::string text(static_cast<std::size_t>(seen.st_size), '\0');
    const ssize_t got = ::pread(known.file.get(), text.data(), text.size(), 0);
    if (got < 0) break;
    text.resize(static_cast<std::size_t>(got));
    // Most have written nothing since.
    if (known.last && text == known.last_text) return known.last;
    const std::optional<std::string_view> inside = wire::unsealed(text);
    if (!inside) continue;
    Result<model::Promises> promises = wire::promises_from(*inside);
    if (promises && promises->ticket == name) {
      known.last = *std::move(promises);
      known.last_text = std::move(text);
      return known.last;
    }
    why = promises ? "it is that of another run" : promises.error().message;
    break;
  }
  note_once(known, name, why);
  // A run whose file is not readable still has its reservations.
  return known.last;
}

void PromiseBoard::note_once(Known& known, const std::string& name, const std::string& why) {
  if (std::exchange(known.noted, true)) return;
  notes_.push_back(
      fmt::format("what a run of user {} has reserved is not known: '{}/{}' cannot be read: {}",
                  known.user, directory_, name, why));
}

std::vector<PromiseBoard::Other> PromiseBoard::read() {
  std::vector<std::string> names = sys::names_in(directory_);
  const bool is_ours = !ticket_.empty() && owner_ == ::getpid();
  if (is_ours && std::ranges::find(names, ticket_) == names.end()) make_again();
  std::erase_if(names, [this](const std::string& it) { return !is_ticket(it) || it == ticket_; });
  std::ranges::sort(names);
  std::erase_if(known_,
                [&names](const auto& it) { return !std::ranges::binary_search(names, it.first); });
  std::vector<Other> others;
  for (const std::string& name : names) {
    if (others.size() == kFilesMax) {
      if (!std::exchange(too_many_, true)) {
        notes_.push_back(
            fmt::format("more than {} runs are on this machine: what the youngest "
                        "have reserved is not seen",
                        kFilesMax));
      }
      break;
    }
    Known* const known = open_other(name);
    if (known == nullptr || !is_locked(known->file)) continue;
    std::optional<model::Promises> promises = read_other(name, *known);
    if (promises) {
      others.push_back({.user = known->user,
                        .is_ours = known->user == ::geteuid(),
                        .promises = *std::move(promises)});
    }
  }
  return others;
}

void PromiseBoard::let_others_go_on() {
  constexpr useconds_t kMoment = 50;
  ::usleep(kMoment);
}

PromiseBoard::~PromiseBoard() {
  if (!file_.is_open() || owner_ != ::getpid()) return;
  ::unlink((directory_ + "/" + ticket_).c_str());
}

}  // namespace trainyard::process

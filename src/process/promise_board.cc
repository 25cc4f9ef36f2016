#include "process/promise_board.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <expected>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <tuple>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <fmt/format.h>

#include "hardware/process_owner.h"
#include "sys/clock.h"
#include "sys/environment.h"
#include "sys/files.h"
#include "sys/open_file.h"
#include "sys/token.h"
#include "wire/promises_text.h"

namespace trainyard::process {
namespace {

/// Prefix of the files: other programs have files in the same directory.
constexpr std::string_view kOurs = "trainyard-";
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

/// The time when the file was made; now if the kernel does not report it (tmpfs before Linux 5.18).
std::int64_t made_at(const sys::Descriptor& file) {
  struct statx about{};
  if (::statx(file.get(), "", AT_EMPTY_PATH, STATX_BTIME, &about) == 0 &&
      (about.stx_mask & STATX_BTIME) != 0) {
    return about.stx_btime.tv_sec;
  }
  constexpr std::int64_t kMilliseconds = 1'000;
  return sys::unix_milliseconds() / kMilliseconds;
}

/// A directory for everybody, in which only who made a file may take it away. The usual ones are
/// there, and root's.
Result<void> make_board_directory(const std::string& directory) {
  constexpr mode_t kEverybodys = 01777;
  if (::mkdir(directory.c_str(), kEverybodys) == 0) {
    // Independent of our umask.
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
  return {"/dev/shm", "/run/lock"};
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
  std::vector<Other> others;
  for (const std::string& directory : directories) {
    for (Other& other : PromiseBoard(directory, {}, sys::Descriptor()).read()) {
      others.push_back(std::move(other));
    }
  }
  return others;
}

/// A file with the lock and with room for what it may grow to: what is promised must not fail for
/// want of it.
Result<sys::Descriptor> PromiseBoard::make_file(const std::string& being_made) {
  constexpr mode_t kReadByAll = 0644;
  auto opened =
      sys::open_file(being_made, {.flags = O_RDWR | O_CREAT | O_EXCL, .mode = kReadByAll});
  if (!opened) return std::unexpected(std::move(opened.error().error));
  sys::Descriptor& file = opened->descriptor;
  static_cast<void>(::fchmod(file.get(), kReadByAll));
  struct flock lock = whole_file(F_WRLCK);
  const bool ready =
      ::fcntl(file.get(), F_OFD_SETLK, &lock) == 0 &&
      (::fallocate(file.get(), FALLOC_FL_KEEP_SIZE, 0, kFileBytesMax) == 0 || errno == EOPNOTSUPP);
  if (ready) return std::move(file);
  Error error = sys::system_error("cannot write '" + being_made + "'", errno);
  ::unlink(being_made.c_str());
  return std::unexpected(std::move(error));
}

std::string PromiseBoard::path_in(const std::string& directory, const std::string& ticket) {
  return fmt::format("{}/{}{}", directory, kOurs, ticket);
}

Result<PromiseBoard> PromiseBoard::open_in(const std::string& directory) {
  Result<void> made = make_board_directory(directory);
  if (!made) return std::unexpected(std::move(made.error()));
  const std::string ticket = fresh_ticket();
  const std::string path = path_in(directory, ticket);
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
  const std::string place = path();
  const std::string being_made = place + std::string(kBeingMade);
  Result<void> made = make_board_directory(directory_);
  Result<sys::Descriptor> file =
      made ? make_file(being_made) : std::unexpected(std::move(made.error()));
  if (file) {
    if (!deleted_.is_open()) deleted_ = std::exchange(file_, sys::Descriptor());
    file_ = *std::move(file);
    write(model::Promises(said_));
    if (!write_failed_ && ::rename(being_made.c_str(), place.c_str()) == 0) return;
    file = std::unexpected(sys::system_error("cannot write '" + being_made + "'", errno));
    ::unlink(being_made.c_str());
  }
  if (std::exchange(write_failed_, true)) return;
  notes_.push_back(
      fmt::format("'{}' was deleted: other runs on this machine do not see what this one has "
                  "reserved: {}",
                  place, file.error().message));
}

/// Opens none of the files: their number is up to others, and must not cost descriptors.
Result<std::vector<PromiseBoard::Entry>> PromiseBoard::entries_of(const std::string& directory) {
  std::vector<Entry> entries;
  std::error_code error;
  const std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator it(directory, error); !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(kOurs) || !is_ticket(name.substr(kOurs.size()))) continue;
    const auto seen = sys::entry_facts(it->path());
    if (!seen || !S_ISREG(seen->mode)) continue;
    entries.push_back(
        {.ticket = name.substr(kOurs.size()), .user = seen->owner, .inode = seen->inode});
  }
  if (!error || error == std::errc::no_such_file_or_directory) return entries;
  return std::unexpected(sys::system_error("cannot read '" + directory + "'", error.value()));
}

/// Removes the files of our yards that are gone with all their tasks. A file gets its name only
/// once it is locked, so an unlocked one belongs to no process.
void PromiseBoard::remove_what_is_left() const {
  const Result<std::vector<Entry>> entries = entries_of(directory_);
  if (!entries) return;
  for (const Entry& entry : *entries) {
    if (entry.user != ::geteuid() || entry.ticket == ticket_) continue;
    const std::string path = path_in(directory_, entry.ticket);
    const auto opened = sys::open_file(path, {.owner = entry.user});
    if (opened && !is_locked(opened->descriptor)) ::unlink(path.c_str());
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
    notes_.push_back(
        fmt::format("{}: other runs on this machine may not see what this one has reserved",
                    sys::system_error("cannot write '" + path() + "'", error).message));
  }
  if (!failed) write_failed_ = false;
}

/// Opens the files of others that are new in the directory, within the limits, and closes those
/// that are gone.
void PromiseBoard::follow_directory() {
  Result<std::vector<Entry>> entries = entries_of(directory_);
  if (!entries) {
    // The files that are open stay open, so that a run without a free descriptor is not blind.
    if (!std::exchange(directory_failed_, true)) {
      notes_.push_back(
          fmt::format("{}: runs that start from now on may not be seen", entries.error().message));
    }
    return;
  }
  directory_failed_ = false;
  const bool is_ours = !ticket_.empty() && owner_ == ::getpid();
  const bool is_there = std::ranges::any_of(
      *entries, [this](const Entry& it) { return it.ticket == ticket_ && it.user == ::geteuid(); });
  if (is_ours && !is_there) make_again();
  std::erase_if(*entries, [this](const Entry& it) { return it.ticket == ticket_; });
  const std::vector<Entry> read = within_limits(*std::move(entries));
  std::map<std::string, Known> before = std::exchange(known_, {});
  for (const Entry& entry : read) {
    const auto known = before.find(entry.ticket);
    if (known != before.end() && known->second.inode == entry.inode) {
      known_.insert(before.extract(known));
    } else {
      open_other(entry);
    }
  }
}

/// The oldest files of each user. If they are too many in all, every user loses the youngest.
std::vector<PromiseBoard::Entry> PromiseBoard::within_limits(std::vector<Entry> entries) {
  std::ranges::sort(entries, {}, &Entry::ticket);
  std::map<std::uint32_t, std::size_t> counts;
  for (Entry& entry : entries) entry.place = counts[entry.user]++;
  const auto most =
      std::ranges::find_if(counts, [](const auto& it) { return it.second > kFilesOfUserMax; });
  std::erase_if(entries, [](const Entry& it) { return it.place >= kFilesOfUserMax; });
  std::ranges::sort(entries, {}, [](const Entry& it) { return std::tie(it.place, it.ticket); });
  const bool too_many = entries.size() > kFilesMax;
  if (too_many) entries.erase(entries.begin() + kFilesMax, entries.end());
  if ((too_many || most != counts.end()) && !std::exchange(too_many_, true)) {
    const std::string who = too_many ? fmt::format("more than {} files are", kFilesMax)
                                     : fmt::format("more than {} files of user {} are",
                                                   kFilesOfUserMax, shown_user(most->first));
    notes_.push_back(
        fmt::format("{} in '{}': what the youngest have reserved is not seen", who, directory_));
  }
  return entries;
}

void PromiseBoard::open_other(const Entry& entry) {
  // Another file may have taken its place since it was listed.
  auto opened = sys::open_file(path_in(directory_, entry.ticket), {.owner = entry.user});
  if (opened) {
    const std::int64_t made = made_at(opened->descriptor);
    known_.try_emplace(entry.ticket, Known{.file = std::move(opened->descriptor),
                                           .user = entry.user,
                                           .inode = opened->facts.st_ino,
                                           .made_unix_s = made,
                                           .last = std::nullopt,
                                           .last_seal = {}});
    return;
  }
  const int error = opened.error().number;
  if (error == EMFILE || error == ENFILE || error == ENOMEM) {
    note_once(entry.user, entry.ticket, sys::system_error("it cannot be opened", error).message);
  }
}

std::optional<model::Promises> PromiseBoard::read_other(const std::string& ticket, Known& known) {
  // The seal of every text is another one. So a text whose seal is known need not be read again.
  std::string seal(wire::kPromiseSealBytes, '\0');
  const ssize_t size = ::pread(known.file.get(), seal.data(), seal.size(), 0);
  seal.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  if (known.last && seal == known.last_seal) return known.last;
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
    const std::optional<std::string_view> inside = wire::unsealed(text);
    if (!inside) continue;
    Result<model::Promises> promises = wire::promises_from(*inside);
    if (promises && promises->ticket == ticket) {
      // Nothing in a file is older than the file; an amount without a time has 0.
      if (std::optional<model::Want>& want = promises->want) {
        want->since_unix_s = std::max(want->since_unix_s, known.made_unix_s);
      }
      const auto correct = [made = known.made_unix_s](std::int64_t& since) {
        if (since > 0) since = std::max(since, made);
      };
      for (model::HeldPromise* const part : {&promises->held, &promises->claimed}) {
        correct(part->since_unix_s);
        for (model::CardPromise& card : part->cards) correct(card.since_unix_s);
      }
      known.last = *std::move(promises);
      known.last_seal = text.substr(0, wire::kPromiseSealBytes);
      return known.last;
    }
    why = promises ? "it is that of another run" : promises.error().message;
    break;
  }
  note_once(known.user, ticket, why);
  // A run whose file is not readable still has its reservations.
  return known.last;
}

/// Once for each user, who could make new files without end, and for a limited number of users.
void PromiseBoard::note_once(std::uint32_t user, const std::string& ticket,
                             const std::string& why) {
  if (noted_.size() >= kFilesMax || !noted_.insert(user).second) return;
  notes_.push_back(
      fmt::format("what a run of user {} has reserved is not known: '{}' cannot be read: {}",
                  shown_user(user), path_in(directory_, ticket), why));
}

/// Empty for a user without a name. Names may come from a network, so each is looked up once.
const std::string& PromiseBoard::name_of(std::uint32_t user) {
  const auto [found, is_new] = user_names_.try_emplace(user);
  if (is_new) found->second = hardware::name_of_user(user).value_or("");
  return found->second;
}

std::string PromiseBoard::shown_user(std::uint32_t user) {
  const std::string& name = name_of(user);
  return name.empty() ? std::to_string(user) : name;
}

std::vector<PromiseBoard::Other> PromiseBoard::read() {
  follow_directory();
  std::vector<Other> others;
  for (auto& [ticket, known] : known_) {
    if (!is_locked(known.file)) continue;
    std::optional<model::Promises> promises = read_other(ticket, known);
    if (promises) {
      others.push_back({.user = known.user,
                        .is_ours = known.user == ::geteuid(),
                        .user_name = name_of(known.user),
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
  ::unlink(path().c_str());
}

}  // namespace trainyard::process

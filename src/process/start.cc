#include "process/start.h"

#include <cerrno>
#include <cstddef>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include "process/start_failure.h"
#include "sys/fork.h"
#include "sys/raw_calls.h"

namespace trainyard::process {

/// Nothing in it changes once the process has begun, but the texts that are cut at their slashes.
class StartOrders {
 public:
  StartOrders(const model::Launch& launch, Start::Options options);

  [[nodiscard]] std::span<const std::string> names() const { return names_; }

  // Read by the process: pointers alone.
  /// As Launch has it; is cut at its slashes, one after the other. Null: there are no directories.
  char* followed_directory = nullptr;
  char* below = nullptr;              ///< The task's directory from there on. Is cut as well.
  const char* checkpoints = nullptr;  ///< Below the task's directory. Null: none.
  // The files are named from the task's directory on where they are below it.
  const char* old_result = nullptr;
  const char* old_copy = nullptr;  ///< The result of the attempt before.
  const char* out = nullptr;       ///< Null: it prints where the keeper does.
  const char* err = nullptr;       ///< The same; the same pointer where it is the same log.
  const char* working_directory = nullptr;
  const char* const* programs = nullptr;  ///< Tried one by one; null comes after the last.
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  rlimit files{};
  StartStreams streams;
  bool adds_to_logs = false;
  pid_t keeper = ::getpid();
  int status = -1;
  std::byte* stack_end = nullptr;

 private:
  static constexpr std::size_t kStackSize = std::size_t{32} << 10;

  // The strings that the pointers refer to.
  std::string followed_;
  std::string below_;
  std::vector<std::string> names_;
  std::vector<const char*> programs_;
  std::vector<char*> arguments_;
  std::vector<char*> environment_;
  // NOLINTNEXTLINE(modernize-avoid-c-arrays): a vector would write all of it.
  std::unique_ptr<std::byte[]> stack_ = std::make_unique_for_overwrite<std::byte[]>(kStackSize);
};

namespace {

// A sanitizer keeps books of each process, which two in one memory would both write.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TRAINYARD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TRAINYARD_SANITIZED 1
#endif
#endif
#if defined(TRAINYARD_SANITIZED)
constexpr bool kMayShareMemory = false;
#else
constexpr bool kMayShareMemory = sys::kCallsAreRaw;
#endif

/// The exit code of a process that has not become its program. It is reported nowhere.
constexpr int kNotStarted = 127;

// From here on in the new process: raw calls and nothing else, as the memory is the keeper's, which
// goes on.

long make_directory(const char* path) {
  return sys::raw_call(SYS_mkdirat, AT_FDCWD, sys::raw_argument(path), 0777);
}

long open_directory(long in, const char* path, int flags) {
  return sys::raw_call(SYS_openat, in, sys::raw_argument(path),
                       O_PATH | O_DIRECTORY | O_CLOEXEC | flags);
}

bool is_link(long in, const char* name) {
  struct statx about{};
  const long seen = sys::raw_call(SYS_statx, in, sys::raw_argument(name), AT_SYMLINK_NOFOLLOW,
                                  STATX_TYPE, sys::raw_argument(&about));
  return seen == 0 && S_ISLNK(about.stx_mode);
}

/// Makes it and those above it that are missing. A descriptor, or an error as a negative number.
long open_followed_directory(char* path) {
  const long there = open_directory(AT_FDCWD, path, 0);
  if (there != -ENOENT) return there;
  for (char* at = path + 1; *at != '\0'; ++at) {
    if (*at != '/') continue;
    *at = '\0';
    const long made = make_directory(path);
    *at = '/';
    if (made < 0 && made != -EEXIST) return made;
  }
  const long made = make_directory(path);
  return made < 0 && made != -EEXIST ? made : open_directory(AT_FDCWD, path, 0);
}

/// Opens a directory in another one, and makes it where it is missing. A link that a task has put
/// there is not followed: the logs, and what the task writes, would be elsewhere.
long open_part(long in, const char* name) {
  long part = open_directory(in, name, O_NOFOLLOW);
  if (part == -ENOENT) {
    const long made = sys::raw_call(SYS_mkdirat, in, sys::raw_argument(name), 0777);
    if (made < 0 && made != -EEXIST) return made;
    part = open_directory(in, name, O_NOFOLLOW);
  }
  return part == -ENOTDIR && is_link(in, name) ? -StartFailure::kNotPlain : part;
}

/// Makes the directories of the task. A descriptor of the task's own, or an error as a negative
/// number.
long open_task_directory(const StartOrders& orders) {
  long at = open_followed_directory(orders.followed_directory);
  for (char* part = orders.below; at >= 0 && *part != '\0';) {
    char* slash = part;
    while (*slash != '/' && *slash != '\0') ++slash;
    const bool is_last = *slash == '\0';
    *slash = '\0';
    const long next = open_part(at, part);
    sys::raw_call(SYS_close, at);
    at = next;
    part = is_last ? slash : slash + 1;
  }
  if (at < 0 || orders.checkpoints == nullptr) return at;
  // A task may keep its checkpoints elsewhere, by a link.
  const long made = sys::raw_call(SYS_mkdirat, at, sys::raw_argument(orders.checkpoints), 0777);
  const long there = made < 0 && made != -EEXIST ? made : open_directory(at, orders.checkpoints, 0);
  sys::raw_call(SYS_close, there < 0 ? at : there);
  return there < 0 ? there : at;
}

/// Opens a log as sys::open_file() does, with raw calls: without waiting for anybody who reads it,
/// and without writing to another file. A descriptor, or an error as a negative number.
long open_log(long in, const char* path, bool adds) {
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK;
  const long file = sys::raw_call(SYS_openat, in, sys::raw_argument(path), flags, 0644);
  // A named pipe without a reader, and a link.
  if (file == -ENXIO || file == -ELOOP) return -StartFailure::kNotPlain;
  if (file < 0) return file;
  struct statx about{};
  const long seen = sys::raw_call(SYS_statx, file, sys::raw_argument(""), AT_EMPTY_PATH,
                                  STATX_TYPE | STATX_NLINK, sys::raw_argument(&about));
  if (seen < 0) return seen;
  if (!S_ISREG(about.stx_mode)) return -StartFailure::kNotPlain;
  if (about.stx_nlink > 1) return -StartFailure::kSecondName;
  if (!adds) {
    const long emptied = sys::raw_call(SYS_ftruncate, file, 0);
    if (emptied < 0) return emptied;
  }
  sys::raw_call(SYS_fcntl, file, F_SETFL, adds ? O_APPEND : 0);
  return file;
}

/// Returns the error, or 0.
int put_log_at(long in, const char* path, bool adds, int standard) {
  if (path == nullptr) return 0;
  const long file = open_log(in, path, adds);
  if (file < 0) return static_cast<int>(-file);
  const long put = sys::raw_call(SYS_dup3, file, standard, 0);
  sys::raw_call(SYS_close, file);
  return put < 0 ? static_cast<int>(-put) : 0;
}

StartFailure make_files_in(long directory, const StartOrders& orders) {
  for (const char* const old : {orders.old_result, orders.old_copy}) {
    if (old == nullptr) continue;
    const long gone = sys::raw_call(SYS_unlinkat, directory, sys::raw_argument(old), 0);
    if (gone < 0 && gone != -ENOENT) {
      return {.step = StartStep::OldResult, .error = static_cast<int>(-gone)};
    }
  }
  int error = put_log_at(directory, orders.out, orders.adds_to_logs, STDOUT_FILENO);
  if (error != 0) return {.step = StartStep::Stdout, .error = error};
  if (orders.err == orders.out && orders.err != nullptr) {
    sys::raw_call(SYS_dup3, STDOUT_FILENO, STDERR_FILENO, 0);
    return {};
  }
  error = put_log_at(directory, orders.err, orders.adds_to_logs, STDERR_FILENO);
  if (error != 0) return {.step = StartStep::Stderr, .error = error};
  return {};
}

StartFailure make_files(const StartOrders& orders) {
  if (orders.followed_directory == nullptr) return make_files_in(AT_FDCWD, orders);
  const long directory = open_task_directory(orders);
  if (directory < 0) {
    return {.step = StartStep::Directory, .error = static_cast<int>(-directory)};
  }
  const StartFailure failure = make_files_in(directory, orders);
  sys::raw_call(SYS_close, directory);
  return failure;
}

/// The keeper has handlers for none, and all that it does not ignore are as they are by default.
void take_default_signals() {
  // As the kernel has it: handler, flags, restorer and mask, all nothing.
  const std::array<std::uint64_t, 4> by_default{};
  constexpr long kMaskSize = 8;
  for (const int signal : kIgnoredByKeeper) {
    sys::raw_call(SYS_rt_sigaction, signal, sys::raw_argument(&by_default), 0, kMaskSize);
  }
  const std::uint64_t none = 0;
  sys::raw_call(SYS_rt_sigprocmask, SIG_SETMASK, sys::raw_argument(&none), 0, kMaskSize);
}

/// Tries one file after the other as execvp() does. Returns the errno that says most.
int become_program(const StartOrders& orders) {
  int most = ENOENT;
  for (const char* const* program = orders.programs; *program != nullptr; ++program) {
    const long failed =
        sys::raw_call(SYS_execve, sys::raw_argument(*program), sys::raw_argument(orders.arguments),
                      sys::raw_argument(orders.environment));
    switch (static_cast<int>(-failed)) {
      case EACCES:
        most = EACCES;
        break;
      case ENOENT:
      case ENOTDIR:
      case ESTALE:
      case ENODEV:
      case ETIMEDOUT:
        break;
      default:
        return static_cast<int>(-failed);
    }
  }
  return most;
}

/// The number of `status` in the process while it is on its way.
constexpr int kStatus = STDERR_FILENO + 2;
constexpr int kThird = STDERR_FILENO + 1;

/// Keeps the descriptors of the keeper that it needs, and none of the others: however long it
/// takes, it does not delay the end of one of these.
void keep_own_descriptors(const StartOrders& orders) {
  // 3 is the keeper's socket, so that none of these is there, and there may be room for no more.
  const StartStreams& streams = orders.streams;
  if (streams.in >= 0) sys::raw_call(SYS_dup3, streams.in, STDIN_FILENO, 0);
  if (streams.third >= 0) {
    sys::raw_call(SYS_dup3, streams.third, kThird, 0);
  } else {
    sys::raw_call(SYS_close, kThird);
  }
  // Refused where it is there already, which is as good.
  sys::raw_call(SYS_dup3, orders.status, kStatus, O_CLOEXEC);
  sys::raw_call(SYS_close_range, kStatus + 1, ~0U, 0);
}

/// Ends the process with the keeper. The guard ends what a keeper leaves, also where the process has
/// changed this; but both may be killed, and then nobody would hear how it ended.
void end_with_keeper(const StartOrders& orders) {
  sys::raw_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
  if (sys::raw_call(SYS_getppid) != orders.keeper) sys::raw_call(SYS_exit_group, kNotStarted);
}

StartFailure follow(const StartOrders& orders) {
  take_default_signals();
  end_with_keeper(orders);
  sys::raw_call(SYS_setsid);
  const StartStreams& streams = orders.streams;
  long joined = 0;
  if (streams.door >= 0) {
    const char zero = '0';
    joined = sys::raw_call(SYS_write, streams.door, sys::raw_argument(&zero), 1);
  }
  keep_own_descriptors(orders);
  if (joined < 0) return {.step = StartStep::Group, .error = static_cast<int>(-joined)};
  const StartFailure failure = make_files(orders);
  if (failure.error != 0) return failure;
  sys::raw_call(SYS_prlimit64, 0, RLIMIT_NOFILE, sys::raw_argument(&orders.files));
  const long entered = sys::raw_call(SYS_chdir, sys::raw_argument(orders.working_directory));
  if (entered < 0)
    return {.step = StartStep::WorkingDirectory, .error = static_cast<int>(-entered)};
  return {.step = StartStep::Program, .error = become_program(orders)};
}

[[noreturn]] void end_with(int status, const StartFailure& failure) {
  sys::raw_call(SYS_write, status, sys::raw_argument(&failure), sizeof(failure));
  for (;;) sys::raw_call(SYS_exit_group, kNotStarted);
}

int be_started(void* argument) {
  const StartOrders& orders = *static_cast<const StartOrders*>(argument);
  end_with(kStatus, follow(orders));
}

/// In the keeper: a process of its own that begins with the orders. Its number, or the negative of
/// an errno. A process that joins a control group does not share the keeper's memory: were it to
/// take too much before its program runs, the kernel would kill all that share it.
pid_t begin(StartOrders& orders) {
  const bool shares = kMayShareMemory && orders.streams.door < 0;
  const pid_t pid =
      shares ? ::clone(be_started, orders.stack_end, CLONE_VM | SIGCHLD, &orders) : ::fork();
  if (pid == 0) be_started(&orders);
  return pid < 0 ? -errno : pid;
}

}  // namespace

StartOrders::StartOrders(const model::Launch& launch, Start::Options options)
    : working_directory(launch.working_directory.c_str()),
      files(options.files),
      streams(options.streams),
      adds_to_logs(options.adds_to_logs),
      arguments_(sys::pointers_to(launch.arguments)),
      environment_(std::move(options.environment)) {
  const std::string& own = launch.task_directory;
  if (!own.empty()) {
    const std::string_view followed = launch.followed_directory();
    below_ = own.substr(followed.size() + 1);
    followed_ = followed.empty() ? "/" : followed;
    followed_directory = followed_.data();
    below = below_.data();
  }
  const auto name_of = [&own](const std::string& path) -> const char* {
    if (path.empty()) return nullptr;
    const bool is_below = !own.empty() && path.starts_with(own) && path[own.size()] == '/';
    return path.c_str() + (is_below ? own.size() + 1 : 0);
  };
  checkpoints = name_of(launch.checkpoint_directory);
  old_result = name_of(launch.result_path);
  old_copy = name_of(launch.result_copy_path);
  out = name_of(launch.stdout_path);
  err = name_of(launch.stderr_path);
  if (launch.stderr_path == launch.stdout_path) err = out;
  if (!launch.arguments.empty()) names_ = places_of_program(launch.arguments[0], environment_);
  for (const std::string& name : names_) programs_.push_back(name.c_str());
  programs_.push_back(nullptr);
  programs = programs_.data();
  arguments = arguments_.data();
  environment = environment_.data();
  constexpr std::uintptr_t kAligned = 16;
  std::byte* const end = stack_.get() + kStackSize;
  stack_end = end - reinterpret_cast<std::uintptr_t>(end) % kAligned;
}

Start::Start(std::unique_ptr<const model::Launch> launch, pid_t pid, sys::Descriptor status)
    : launch_(std::move(launch)), pid_(pid), status_(std::move(status)) {}
Start::~Start() = default;

Result<std::unique_ptr<Start>> Start::program(std::unique_ptr<const model::Launch> launch,
                                              Options options) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return std::unexpected(
        sys::system_error(fmt::format("cannot start '{}'", launch->arguments[0]), errno));
  }
  sys::Descriptor status(ends[0]);
  const sys::Descriptor tell(ends[1]);
  auto orders = std::make_unique<StartOrders>(*launch, std::move(options));
  orders->status = tell.get();
  const pid_t pid = begin(*orders);
  if (pid < 0) {
    return std::unexpected(
        explain(*launch, orders->names(), {.step = StartStep::Process, .error = -pid}));
  }
  auto start = std::make_unique<Start>(std::move(launch), pid, std::move(status));
  start->orders_ = std::move(orders);
  return start;
}

std::optional<Result<void>> Start::outcome() const {
  StartFailure failure;
  const ssize_t got = ::read(status_.get(), &failure, sizeof(failure));
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (got != sizeof(failure)) return Result<void>{};
  const std::span<const std::string> places =
      orders_ ? orders_->names() : std::span<const std::string>();
  return std::unexpected(explain(*launch_, places, failure));
}

bool Start::is_on_its_way() const {
  pollfd status{.fd = status_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&status, 1, 0) == 0;
}

void make_files_or_end(const model::Launch& launch, int status) {
  StartFailure failure = make_files(StartOrders(launch, {}));
  if (failure.error == 0 && ::chdir(launch.task_directory.c_str()) != 0) {
    failure = {.step = StartStep::WorkingDirectory, .error = errno};
  }
  if (failure.error != 0) end_with(status, failure);
}

}  // namespace trainyard::process

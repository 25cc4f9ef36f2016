#include "library/task_process.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <expected>
#include <mutex>
#include <optional>

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "library/task_state.h"
#include "link/arena.h"
#include "link/conversation.h"
#include "model/event.h"
#include "pipeline/trouble.h"
#include "sys/files.h"
#include "sys/open_file.h"
#include "sys/terminal.h"
#include "sys/this_process.h"
#include "wire/field_reader.h"
#include "wire/frame.h"
#include "wire/hello.h"
#include "wire/result_text.h"
#include "wire/task.h"

namespace trainyard::library {
namespace {

/// The smallest page of any machine: what is within one of this size is within one of theirs.
constexpr std::size_t kPage = 4'096;

}  // namespace

Result<void> ResultFile::replace(std::string_view text) {
  file_.close();
  Result<void> written = sys::replace_file(path_, text);
  // A member comes behind another one.
  const bool has_members = text.starts_with('{') && text.ends_with('}') && text.size() > 2;
  if (!written || !has_members) return written;
  if (auto opened = sys::open_file(path_, {.flags = O_WRONLY})) {
    file_ = std::move(opened->descriptor);
    facts_ = opened->facts;
    size_ = text.size();
  }
  return written;
}

bool ResultFile::add(std::string_view object) {
  if (!file_.is_open() || object.size() <= 2) return false;
  // In the place of the last brace: ,"key":1}
  std::string member(object);
  member.front() = ',';
  const std::size_t at = size_ - 1;
  const std::size_t last = at + member.size() - 1;
  // The kernel writes what is within a page as one, and looks for signals between pages.
  if (at / kPage != last / kPage || !is_as_it_was()) return false;
  const ssize_t put = ::pwrite(file_.get(), member.data(), member.size(), static_cast<off_t>(at));
  if (put == static_cast<ssize_t>(member.size())) {
    size_ = last + 1;
    return true;
  }
  // The disk is full: its blocks may be smaller than a page.
  if (put > 0 && (::ftruncate(file_.get(), static_cast<off_t>(size_)) != 0 ||
                  ::pwrite(file_.get(), "}", 1, static_cast<off_t>(at)) != 1)) {
    file_.close();
  }
  return false;
}

/// No other file has taken its place, and nobody has written to it.
bool ResultFile::is_as_it_was() const {
  struct stat now{};
  return ::lstat(path_.c_str(), &now) == 0 && now.st_dev == facts_.st_dev &&
         now.st_ino == facts_.st_ino && now.st_size == static_cast<off_t>(size_);
}

namespace {

/// No text that anybody reports.
constexpr const char* kNan = "\x01trainyard: not a number\x01";

/// A number that JSON cannot write stands there as Python writes it, so that the yard tells which
/// one it keeps as null.
Json with_words_for_nan(Json value) {
  if (value.is_structured()) {
    for (Json& each : value) each = with_words_for_nan(std::move(each));
  } else if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    value = kNan;
  }
  return value;
}

constexpr std::string_view kTooDeep = "nested too deep for the yard, which reads 64 levels";

/// How deep lists and objects stand in each other; no deeper than is asked.
int depth_of(const Json& value, int at_most = wire::kJsonDepthMax + 1) {
  if (!value.is_structured() || at_most == 0) return 0;
  int deepest = 0;
  for (const Json& each : value) deepest = std::max(deepest, depth_of(each, at_most - 1));
  return deepest + 1;
}

std::string result_text(Json result) {
  std::string text = wire::fields_text(with_words_for_nan(std::move(result)));
  const std::string written = wire::fields_text(kNan);
  for (auto at = text.find(written); at != std::string::npos; at = text.find(written, at)) {
    text.replace(at, written.size(), "NaN");
  }
  return text;
}

/// A larger buffer goes by an arena, a smaller one is not worth it.
constexpr std::size_t kInFrameMax = std::size_t{1} << 20;
constexpr std::size_t kArenas = 2;

/// The value of NAME=value in the environment of a launch.
std::string variable(const model::Launch& launch, std::string_view name) {
  for (const std::string& entry : launch.environment) {
    if (entry.starts_with(name) && entry.substr(name.size()).starts_with('=')) {
      return entry.substr(name.size() + 1);
    }
  }
  return {};
}

/// Calls user code, and catches whatever comes out of it. A process that the code has forked and
/// that comes back from it, too, is not the task, and ends here before it is taken for it.
template <class Call>
std::optional<pipeline::Trouble> trouble_in(Call call) {
  const std::int64_t task = sys::own_pid();
  std::optional<pipeline::Trouble> trouble;
  try {
    call();
  } catch (...) {
    trouble = pipeline::trouble_of(std::current_exception());
  }
  if (sys::own_pid() == task) return trouble;
  sys::write_standard_error(
      fmt::format("trainyard: a process that the task has forked came back from it{}; "
                  "end it with _exit()\n",
                  trouble ? " (" + trouble->message + ")" : ""));
  std::_Exit(EXIT_FAILURE);
}

}  // namespace

struct TaskProcess::State {
  State(link::Conversation its_yard, std::string its_result_path)
      : result_file(std::move(its_result_path)), yard(std::move(its_yard)) {
    yard.use(arenas);
  }

  using Lock = std::scoped_lock<std::mutex>;

  // --- with the lock ---

  /// An error: what is too long, or why the yard has closed the connection.
  Result<void> send(const wire::Frame& frame) {
    if (closed) return std::unexpected(*closed);
    Result<void> sent = yard.tell(frame);
    if (!sent || !yard.has_ended()) return sent;
    const Result<wire::Frame> last = yard.hear(wire::FrameKind::Failure);
    closed = last ? Error{"the yard has closed the connection"} : last.error();
    return std::unexpected(*closed);
  }
  /// When the yard is gone it ends this process in a moment, and there is nobody else to tell.
  void tell(const wire::TaskReport& report) {
    const bool was_closed = closed.has_value();
    const Result<void> sent =
        send({.kind = wire::FrameKind::Report, .fields = wire::to_fields(report)});
    if (!sent && !was_closed) complain(sent.error());
  }
  void tell(model::Said said, const pipeline::Trouble& trouble) {
    tell(wire::StageWord{.said = said, .message = trouble.message, .traceback = trouble.traceback});
  }
  Result<void> leave(const Json& result) { return result_file.replace(result_text(result)); }
  Result<void> send_shared(wire::Frame frame, std::span<const std::byte> buffer);

  // --- without it, the first thread ---

  void say(model::Said said, const pipeline::Trouble& trouble = {}) {
    const Lock lock(mutex);
    tell(said, trouble);
  }
  /// Says that it waits, and why, and waits. No other thread of the task speaks meanwhile: one that
  /// waits until a buffer has been read would take the order for an answer.
  Result<Device> wait_for_device(model::Said said, const pipeline::Trouble& trouble = {}) {
    const Lock lock(mutex);
    tell(said, trouble);
    const Result<wire::Frame> frame = yard.hear(wire::FrameKind::Order);
    if (!frame) return std::unexpected(frame.error());
    const Result<wire::TaskOrder> order = wire::read_order(frame->fields);
    if (!order) return std::unexpected(order.error());
    const auto& train = std::get<wire::TrainOrder>(*order);
    return Device{.name = train.device, .memory_max = train.gpu_memory_max};
  }
  /// Leaves what train() returned, and what was reported.
  Result<void> leave_all(const Json& result) {
    const Lock lock(mutex);
    if (result.is_object()) reported.update(result);
    // A result that is neither an object nor null is left as it is, and the yard reports the
    // mistake.
    const bool odd = !result.is_object() && !result.is_null();
    if (!speaks_for_all() || (!odd && reported.empty())) return {};
    return leave(odd ? result : reported);
  }
  int load_and_train(Task& task);

  static void complain(const Error& error) {
    sys::write_standard_error(fmt::format("trainyard: {}\n", error.message));
  }
  [[nodiscard]] bool speaks_for_all() const { return rank.value_or(0) == 0; }

  std::optional<int> rank;  ///< Of a task of several.
  int ranks = 1;

  /// Guards the members below: load() and train() may start threads that report, too.
  std::mutex mutex;
  ResultFile result_file;
  link::ArenaPool arenas{{.arenas_max = kArenas}};
  link::Conversation yard;
  std::optional<Error> closed;  ///< Why the yard has closed the connection.
  Json reported = Json::object();
};

int TaskProcess::State::load_and_train(Task& task) {
  say(model::Said::Loading);
  if (const std::optional<pipeline::Trouble> trouble = trouble_in([&] { task.load(); })) {
    say(trouble->out_of_memory ? model::Said::OutOfMemory : model::Said::Failed, *trouble);
    return EXIT_FAILURE;
  }
  Result<Device> device = wait_for_device(model::Said::Loaded);
  while (device) {
    Json result;
    const std::optional<pipeline::Trouble> trouble =
        trouble_in([&] { result = task.train(*device); });
    if (!trouble) {
      if (const Result<void> left = leave_all(result); !left) {
        // A task without its result has not finished, even if training succeeded.
        complain(left.error());
        say(model::Said::Failed,
            {.out_of_memory = false, .message = "its result is lost: " + left.error().message});
        return EXIT_FAILURE;
      }
      say(model::Said::Trained);
      return EXIT_SUCCESS;
    }
    // The others of several ranks cannot go on without it: all of them are tried again, anew.
    if (!trouble->out_of_memory || rank) {
      say(trouble->out_of_memory ? model::Said::OutOfMemory : model::Said::Failed, *trouble);
      return EXIT_FAILURE;
    }
    device = wait_for_device(model::Said::OutOfMemory, *trouble);
  }
  complain(device.error());
  return EXIT_FAILURE;
}

TaskProcess::TaskProcess(std::unique_ptr<State> state) : state_(std::move(state)) {}
TaskProcess::~TaskProcess() = default;

int TaskProcess::run(Task& task, const model::Launch& launch) {
  link::Conversation yard({.with = "the yard", .limits = wire::kTaskLimits});
  Result<void> met = yard.connect(variable(launch, "TRAINYARD_SOCKET"));
  const bool is_rank = launch.ranks > 0;
  std::optional<int> rank;
  std::optional<int> ranks;
  if (is_rank) {
    rank = std::atoi(variable(launch, "TRAINYARD_RANK").c_str());
    ranks = launch.ranks;
  }
  if (met) {
    met = yard.greet({.role = is_rank ? wire::Role::Rank : wire::Role::Task,
                      .version = wire::kProtocolVersion,
                      .program = "a task in C++",
                      .token = variable(launch, "TRAINYARD_TOKEN"),
                      .rank = rank,
                      .ranks = ranks});
  }
  if (!met) {
    State::complain(met.error());
    return EXIT_FAILURE;
  }
  TaskProcess process(std::make_unique<State>(std::move(yard), launch.result_path));
  process.state_->rank = rank;
  process.state_->ranks = ranks.value_or(1);
  TaskState& state = TaskAccess::state(task);
  state.process = &process;
  state.task_dir = launch.task_directory;
  return process.state_->load_and_train(task);
}

void TaskProcess::progress(double fraction, const Json& values) {
  if (!state_->speaks_for_all()) return;
  const bool deep = depth_of(values) > wire::kJsonDepthMax;
  if (deep) State::complain(Error{"progress: its values are " + std::string(kTooDeep)});
  const bool some = values.is_object() && !values.empty() && !deep;
  const State::Lock lock(state_->mutex);
  state_->tell(wire::Progress{.fraction = fraction,
                              .values = some ? wire::fields_text(values) : std::string()});
}

void TaskProcess::report(const std::string& key, const Json& value) {
  if (!state_->speaks_for_all()) return;
  const State::Lock lock(state_->mutex);
  const bool is_new = !state_->reported.contains(key);
  state_->reported[key] = value;
  // It is left once more with what train() returns.
  if (is_new && state_->result_file.add(result_text({{key, value}}))) return;
  if (const Result<void> left = state_->leave(state_->reported); !left) {
    State::complain(left.error());
  }
}

Result<void> TaskProcess::send(const std::string& command, const Json& data,
                               std::span<const std::byte> buffer) {
  // With the message around it.
  if (depth_of(data) >= wire::kJsonDepthMax) {
    return std::unexpected(Error{"what is sent is " + std::string(kTooDeep)});
  }
  const wire::Message message{.command = command, .data = wire::fields_text(data)};
  wire::Frame frame{.kind = wire::FrameKind::Report, .fields = wire::to_fields(message)};
  const State::Lock lock(state_->mutex);
  if (buffer.size() > kInFrameMax) return state_->send_shared(std::move(frame), buffer);
  if (!buffer.empty()) {
    frame.buffers.emplace_back(reinterpret_cast<const char*>(buffer.data()), buffer.size());
  }
  return state_->send(frame);
}

int TaskProcess::rank() const { return state_->rank.value_or(0); }
int TaskProcess::ranks() const { return state_->ranks; }

/// With one arena that is filled while the yard reads the other.
Result<void> TaskProcess::State::send_shared(wire::Frame frame, std::span<const std::byte> buffer) {
  Result<link::ArenaPool::Loan> loan = arenas.lend(buffer.size());
  while (!loan && arenas.in_use() == kArenas) {
    // When the yard is gone it ends this process in a moment.
    if (Result<void> free = yard.wait_for_release(); !free) return free;
    loan = arenas.lend(buffer.size());
  }
  if (!loan) return std::unexpected(loan.error());
  std::ranges::copy(buffer, loan->bytes().begin());
  frame.shared = {loan->buffer()};
  return send(frame);
}

}  // namespace trainyard::library

#include "yard/task_process.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/result.h"
#include "io/arena_pool.h"
#include "io/conversation.h"
#include "io/files.h"
#include "io/terminal.h"
#include "model/event.h"
#include "model/launch.h"
#include "pipeline/trouble.h"
#include "trainyard/task.h"
#include "wire/frame.h"
#include "wire/hello.h"
#include "wire/task.h"
#include "yard/task_state.h"

namespace trainyard {
namespace {

std::string text_of(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// A larger buffer goes by an arena, a smaller one is not worth it.
constexpr std::size_t kInFrameMax = std::size_t{1} << 20;
constexpr std::size_t kArenas = 2;

/// Of NAME=value in the environment of a launch.
std::string variable(const Launch& launch, std::string_view name) {
  for (const std::string& entry : launch.environment) {
    if (entry.starts_with(name) && entry.substr(name.size()).starts_with('=')) {
      return entry.substr(name.size() + 1);
    }
  }
  return {};
}

/// Calls user code, and catches whatever comes out of it.
template <class Call>
std::optional<Trouble> trouble_in(Call call) {
  try {
    call();
    return std::nullopt;
  } catch (...) {
    return trouble_of(std::current_exception());
  }
}

}  // namespace

struct TaskProcess::State {
  State(io::Conversation its_yard, std::string its_result_path)
      : yard(std::move(its_yard)), result_path(std::move(its_result_path)) {
    yard.use(arenas);
  }

  /// When the yard is gone it ends this process in a moment, and there is nobody else to tell.
  void tell(const wire::TaskReport& report) {
    const Result<void> told =
        yard.tell({.kind = wire::FrameKind::Report, .fields = wire::to_fields(report)});
    if (!told) complain(told.error());
  }
  void say(Said said, const Trouble& trouble = {}) {
    tell(wire::StageWord{.said = said, .message = trouble.message, .traceback = trouble.traceback});
  }
  Result<Device> wait_for_device() {
    const Result<wire::Frame> frame = yard.hear(wire::FrameKind::Order);
    if (!frame) return std::unexpected(frame.error());
    const Result<wire::TaskOrder> order = wire::read_order(frame->fields);
    if (!order) return std::unexpected(order.error());
    return Device{.name = std::get<wire::TrainOrder>(*order).device};
  }
  void leave(const Json& result) {
    const Result<void> left = io::replace_file(result_path, text_of(result));
    if (!left) complain(left.error());
  }
  static void complain(const Error& error) {
    io::write_text(io::kStandardError, fmt::format("trainyard: {}\n", error.message));
  }
  void send_shared(wire::Frame frame, std::span<const std::byte> buffer);
  int load_and_train(Task& task);

  io::ArenaPool arenas{{.arenas_max = kArenas}};
  io::Conversation yard;
  std::string result_path;
  Json reported = Json::object();
};

int TaskProcess::State::load_and_train(Task& task) {
  say(Said::Loading);
  if (const std::optional<Trouble> trouble = trouble_in([&] { task.load(); })) {
    say(trouble->out_of_memory ? Said::OutOfMemory : Said::Failed, *trouble);
    return EXIT_FAILURE;
  }
  say(Said::Loaded);
  for (;;) {
    const Result<Device> device = wait_for_device();
    if (!device) {
      complain(device.error());
      return EXIT_FAILURE;
    }
    Json result;
    const std::optional<Trouble> trouble = trouble_in([&] { result = task.train(*device); });
    if (!trouble) {
      if (result.is_object()) reported.update(result);
      // What is neither an object nor nothing is left as it is, and the yard says what is wrong.
      const bool odd = !result.is_object() && !result.is_null();
      if (odd || !reported.empty()) leave(odd ? result : reported);
      say(Said::Trained);
      return EXIT_SUCCESS;
    }
    say(trouble->out_of_memory ? Said::OutOfMemory : Said::Failed, *trouble);
    if (!trouble->out_of_memory) return EXIT_FAILURE;
  }
}

TaskProcess::TaskProcess(std::unique_ptr<State> state) : state_(std::move(state)) {}
TaskProcess::~TaskProcess() = default;

int TaskProcess::run(Task& task, const Launch& launch) {
  io::Conversation yard({.with = "the yard", .within = std::nullopt, .limits = wire::kTaskLimits});
  Result<void> met = yard.connect(variable(launch, "TRAINYARD_SOCKET"));
  if (met) {
    met = yard.greet({.role = wire::Role::Task,
                      .version = wire::kProtocolVersion,
                      .program = "a task in C++",
                      .token = variable(launch, "TRAINYARD_TOKEN")});
  }
  if (!met) {
    State::complain(met.error());
    return EXIT_FAILURE;
  }
  TaskProcess process(std::make_unique<State>(std::move(yard), launch.result_path));
  TaskState& state = TaskAccess::state(task);
  state.process = &process;
  state.task_dir = launch.task_directory;
  return process.state_->load_and_train(task);
}

void TaskProcess::progress(double fraction, const Json& values) {
  const bool some = values.is_object() && !values.empty();
  state_->tell(
      wire::Progress{.fraction = fraction, .values = some ? text_of(values) : std::string()});
}

void TaskProcess::report(const std::string& key, const Json& value) {
  state_->reported[key] = value;
  state_->leave(state_->reported);
}

void TaskProcess::send(const std::string& command, const Json& data,
                       std::span<const std::byte> buffer) {
  const wire::Message message{.command = command, .data = text_of(data), .buffer = {}};
  wire::Frame frame{.kind = wire::FrameKind::Report, .fields = wire::to_fields(message)};
  if (buffer.size() > kInFrameMax) return state_->send_shared(std::move(frame), buffer);
  if (!buffer.empty()) {
    frame.buffers.emplace_back(reinterpret_cast<const char*>(buffer.data()), buffer.size());
  }
  if (const Result<void> told = state_->yard.tell(frame); !told) State::complain(told.error());
}

/// With one arena that is filled while the yard reads the other.
void TaskProcess::State::send_shared(wire::Frame frame, std::span<const std::byte> buffer) {
  Result<io::ArenaPool::Loan> loan = arenas.lend(buffer.size());
  while (!loan && arenas.in_use() == kArenas) {
    // When the yard is gone it ends this process in a moment.
    if (const Result<void> free = yard.wait_for_release(); !free) return complain(free.error());
    loan = arenas.lend(buffer.size());
  }
  if (!loan) return complain(loan.error());
  std::ranges::copy(buffer, loan->bytes().begin());
  frame.shared = {loan->buffer()};
  if (const Result<void> told = yard.tell(frame); !told) complain(told.error());
}

}  // namespace trainyard

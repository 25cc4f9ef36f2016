#include "trainyard/task.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <expected>

#include <sys/random.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "library/task_process.h"
#include "library/task_state.h"
#include "model/status.h"

namespace trainyard {
namespace {

/// A random one (RFC 9562, version 4).
std::string make_uuid() {
  std::array<std::uint8_t, 16> bytes{};
  check(::getrandom(bytes.data(), bytes.size(), 0) == static_cast<long>(bytes.size()),
        "random bytes from the kernel");
  bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0FU) | 0x40U);
  bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3FU) | 0x80U);
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", bytes.at(i));
  }
  return text;
}

}  // namespace

Task::Task() : Task(TaskOptions{}) {}

Task::Task(TaskOptions options) : state_(std::make_unique<TaskState>()) {
  if (options.id.empty()) options.id = make_uuid();
  state_->options = std::move(options);
}

Task::~Task() = default;

const std::string& Task::id() const { return state_->options.id; }
Status Task::status() const { return state_->status; }
TaskOutcome Task::outcome() const { return state_->outcome; }
int Task::exit_code() const { return state_->exit_code; }
bool Task::is_kept() const { return state_->kept; }
bool Task::is_alive() const {
  switch (state_->status) {
    case Status::Available:
    case Status::Loading:
    case Status::Waiting:
    case Status::Training:
    case Status::Finished:
      return true;
    default:
      return false;
  }
}
const std::string& Task::message() const { return state_->message; }
const std::string& Task::traceback() const { return state_->traceback; }
std::optional<Stage> Task::failed_in() const { return state_->failed_in; }
int Task::load_numbers() const { return state_->times.load_numbers; }
int Task::train_numbers() const { return state_->times.train_numbers; }

std::optional<std::chrono::milliseconds> Task::load_time() const { return state_->times.load; }
std::optional<std::chrono::milliseconds> Task::train_time() const { return state_->times.train; }

Json Task::result() const {
  Json result = Json::parse(state_->result, nullptr, /*allow_exceptions=*/false);
  return result.is_object() ? result : Json::object();
}

const std::string& Task::task_dir() const { return state_->task_dir; }

int Task::rank() const { return state_->process != nullptr ? state_->process->rank() : 0; }
int Task::ranks() const { return state_->process != nullptr ? state_->process->ranks() : 1; }

void Task::progress(double fraction) { progress(fraction, Json::object()); }

void Task::progress(double fraction, const Json& values) {
  if (state_->process != nullptr) state_->process->progress(fraction, values);
}

void Task::report(const std::string& key, const Json& value) {
  if (state_->process != nullptr) state_->process->report(key, value);
}

Result<void> Task::send(const std::string& command, const Json& data,
                        std::span<const std::byte> buffer) {
  if (state_->process != nullptr) return state_->process->send(command, data, buffer);
  return std::unexpected(Error{"only the process of a task can send"});
}

namespace {

/// An outcome and its form in the journal.
struct Known {
  TaskOutcome outcome;
  model::Verdict verdict;
  model::Failure failure = model::Failure::None;
};

constexpr Known failed_with(TaskOutcome outcome, model::Failure failure) {
  return {.outcome = outcome, .verdict = model::Verdict::Failed, .failure = failure};
}

constexpr std::array<Known, 12> kKnown{
    {{.outcome = TaskOutcome::None, .verdict = model::Verdict::None},
     {.outcome = TaskOutcome::Finished, .verdict = model::Verdict::Finished},
     failed_with(TaskOutcome::Exception, model::Failure::Error),
     failed_with(TaskOutcome::OutOfMemory, model::Failure::OutOfMemory),
     failed_with(TaskOutcome::TimeLimit, model::Failure::Timeout),
     failed_with(TaskOutcome::Killed, model::Failure::Killed),
     failed_with(TaskOutcome::Crashed, model::Failure::Crashed),
     failed_with(TaskOutcome::Exited, model::Failure::Exit),
     failed_with(TaskOutcome::NotStarted, model::Failure::CannotStart),
     failed_with(TaskOutcome::Lost, model::Failure::Lost),
     {.outcome = TaskOutcome::Skipped, .verdict = model::Verdict::Skipped},
     {.outcome = TaskOutcome::Stopped, .verdict = model::Verdict::Stopped}}};

}  // namespace

std::string_view to_text(TaskOutcome outcome) {
  const auto known = std::ranges::find(kKnown, outcome, &Known::outcome);
  if (known == kKnown.end() || outcome == TaskOutcome::None) return "WAITING";
  const bool failed = known->verdict == model::Verdict::Failed;
  return failed ? model::to_text(known->failure) : model::to_text(known->verdict);
}

TaskOutcome library::outcome_of(model::Verdict verdict, model::Failure failure) {
  const bool failed = verdict == model::Verdict::Failed;
  const auto known = std::ranges::find_if(kKnown, [&](const Known& it) {
    return it.verdict == verdict && (!failed || it.failure == failure);
  });
  return known == kKnown.end() ? TaskOutcome::Lost : known->outcome;
}

}  // namespace trainyard

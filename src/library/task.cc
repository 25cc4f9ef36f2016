#include "trainyard/task.h"

#include <array>
#include <cstdint>
#include <expected>

#include <sys/random.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "library/task_process.h"
#include "library/task_state.h"

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

}  // namespace trainyard

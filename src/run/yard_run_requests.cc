// The part of a yard that does what people ask for: of a run at work, and before one goes on.
#include <expected>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/match.h"
#include "base/result.h"
#include "base/time.h"
#include "link/control_server.h"
#include "model/event.h"
#include "model/ids.h"
#include "run/local_machine.h"
#include "run/submissions.h"
#include "run/tasks.h"
#include "run/yard_run.h"
#include "wire/control.h"

namespace trainyard::run {
namespace {

model::RetryAsked asked_for(model::TaskIndex task, const wire::Retry& retry) {
  return {.task = task,
          .memory = Bytes{retry.memory_bytes},
          .gpu_memory = Bytes{retry.gpu_memory_bytes},
          .time_limit = Duration{retry.time_limit_ms}};
}

}  // namespace

Result<void> YardRun::retry(const std::vector<wire::Retry>& tasks) {
  for (const wire::Retry& retry : tasks) {
    const std::optional<model::TaskIndex> task = tasks_.find(retry.group, retry.id);
    if (!task) {
      return std::unexpected(
          Error{fmt::format("the job file no longer has a task {}/{}", retry.group, retry.id)});
    }
    const model::RetryAsked asked = asked_for(*task, retry);
    if (const std::string why = why_never(retry, asked); !why.empty()) {
      return std::unexpected(Error{why});
    }
    retries_.emplace_back(asked, retry.group + "/" + retry.id);
  }
  return {};
}

std::string YardRun::why_never(const wire::Retry& retry, const model::RetryAsked& asked) const {
  const std::string why = tasks_.why_never_with(asked);
  if (why.empty()) return why;
  return fmt::format("{}/{} can never run here: {}", retry.group, retry.id, why);
}

void YardRun::ask(NamedTask named, LocalMachine::Asked asked, link::Reply reply) {
  const std::optional<model::TaskIndex> task = tasks_.find(named.group, named.id);
  if (!task || !machine_) return reply({.outcome = wire::Outcome::NoSuchTask, .text = {}});
  if (interrupted_ && !std::holds_alternative<model::KillAsked>(asked)) {
    const bool retries = std::holds_alternative<model::RetryAsked>(asked);
    return reply({.outcome = wire::Outcome::Error,
                  .text = fmt::format("the run is stopping: type the command again when it {}",
                                      retries ? "has ended" : "has been resumed")});
  }
  std::visit([&](auto& it) { it.task = *task; }, asked);
  machine_->ask(asked, [reply = std::move(reply)](bool done) mutable {
    reply({.outcome = done ? wire::Outcome::Done : wire::Outcome::NotRunning, .text = {}});
  });
}

void YardRun::serve(const wire::ControlRequest& request, link::Reply reply) {
  match(
      request, [&](const wire::Ping&) { reply({.outcome = wire::Outcome::Done, .text = {}}); },
      [&](const wire::Kill& it) {
        ask({.group = it.group, .id = it.id}, model::KillAsked{}, std::move(reply));
      },
      [&](const wire::Retry& it) {
        if (const std::string why = tasks_.why_no_retry(); !why.empty()) {
          return reply({.outcome = wire::Outcome::Error, .text = why});
        }
        const std::optional<model::TaskIndex> task = tasks_.find(it.group, it.id);
        const std::string why = task ? why_never(it, asked_for(*task, it)) : std::string();
        if (!why.empty()) return reply({.outcome = wire::Outcome::Error, .text = why});
        ask({.group = it.group, .id = it.id}, asked_for({}, it), std::move(reply));
      },
      [&](const wire::Hold& it) {
        ask({.group = it.group, .id = it.id}, model::HoldAsked{.task = {}, .hold = it.hold},
            std::move(reply));
      },
      [&](const wire::SetPriority& it) {
        ask({.group = it.group, .id = it.id},
            model::PriorityAsked{.task = {}, .priority = it.priority}, std::move(reply));
      },
      [&](const wire::Submit& submit) {
        if (submissions_) return submissions_->take(submit, std::move(reply));
        reply({.outcome = wire::Outcome::Error,
               .text = "the run is starting; try again in a moment"});
      });
}

bool YardRun::kill(model::TaskIndex task, LocalMachine::Answered reply) {
  if (!machine_) return false;
  machine_->ask(model::KillAsked{.task = task}, std::move(reply));
  return true;
}

}  // namespace trainyard::run

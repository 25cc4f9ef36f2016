#include "sim/turn_text.h"

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/match.h"
#include "model/code.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/sharing_text.h"
#include "model/status.h"
#include "model/waiting.h"

namespace trainyard::sim {
namespace {

std::string name(model::AttemptKey key) {
  return fmt::format("{}.{}", key.task.value, key.attempt);
}

std::string words(const model::End& end) {
  return match(
      end, [](const model::ExitedWith& it) { return fmt::format("exit {}", it.code); },
      [](const model::KilledBy& it) {
        return fmt::format("signal {}{}", it.signal, it.out_of_memory ? ", out of memory" : "");
      },
      [](const model::NotStarted& it) {
        return fmt::format("not started{}: {}", it.of_machine ? " by the machine" : "", it.why);
      },
      [](const model::Vanished& it) { return fmt::format("vanished: {}", it.why); });
}

std::string words(const model::What& what) {
  return match(
      what,
      [](const model::MachineJoined& it) {
        return fmt::format(
            "machine {} joins as {}{}", it.name, it.machine.value,
            it.until ? fmt::format(" until {} ms", it.until->since_start.count()) : std::string());
      },
      [](const model::MachineGone& it) {
        return fmt::format("machine {} is gone: {}", it.machine.value, it.why);
      },
      [](const model::AttemptStarted& it) { return fmt::format("{} started", name(it.key)); },
      [](const model::StageReported& it) {
        return fmt::format("{} says {} {}", name(it.key), model::to_text(it.said), it.message);
      },
      [](const model::Progressed& it) { return name(it.key) + " tells how far it is"; },
      [](const model::AttemptEnded& it) {
        return fmt::format("{} ended: {}, peak {}", name(it.key), words(it.end),
                           to_text(it.usage.memory_peak));
      },
      [](const model::Sampled& it) {
        std::string text = fmt::format("sample: {} available, others use {:.0f} % CPU",
                                       to_text(it.memory_available), 100 * it.cpu_used_by_others);
        for (const model::TaskSample& sample : it.tasks) {
          text += fmt::format(", {} has {}", name(sample.key), to_text(sample.memory));
        }
        return text;
      },
      [](const model::GpusSampled& it) {
        std::string text = "GPUs:";
        for (const model::GpuReading& gpu : it.gpus) {
          text += gpu.present ? fmt::format(" {} used", to_text(gpu.used)) : " gone";
        }
        for (const model::GpuFound& found : it.found) {
          text += fmt::format(", {} is {} with {}", found.gpu.value, found.what.uuid,
                              to_text(found.what.memory));
        }
        for (const model::GpuUse& use : it.uses) {
          text +=
              fmt::format(", {} has {} on {}", name(use.key), to_text(use.memory), use.gpu.value);
        }
        return text;
      },
      [](const model::KeeperSilent& it) {
        if (it.another) return fmt::format("another keeper answers: {}", *it.another);
        return std::string(it.silent ? "the keeper is silent" : "the keeper answers again");
      },
      [](const model::InterruptAsked&) { return std::string("interrupt"); },
      [](const model::KillAsked& it) {
        return fmt::format("kill of task {} asked (request {})", it.task.value, it.request);
      },
      [](const model::RetryAsked& it) {
        return fmt::format("another try of task {} asked (request {}) with {} and {} of a GPU",
                           it.task.value, it.request, to_text(it.memory), to_text(it.gpu_memory));
      },
      [](const model::HoldAsked& it) {
        return fmt::format("task {} is to be {} (request {})", it.task.value,
                           it.hold ? "put on hold" : "released", it.request);
      },
      [](const model::PriorityAsked& it) {
        return fmt::format("task {} is to have priority {} (request {})", it.task.value,
                           it.priority, it.request);
      },
      [](const model::BatchAdded& it) {
        return fmt::format("batch {} with {} tasks is added", it.number, it.plan->tasks.size());
      },
      [](const model::NeighboursSeen& it) {
        return fmt::format("{} other yards seen", it.neighbours.size());
      },
      [](const model::ClaimRefused& it) {
        std::string text = "refused:";
        for (const model::AttemptKey key : it.attempts) text += " " + name(key);
        return text + (it.no_more ? ", and no more in this turn" : "");
      },
      [](const model::LimitsChanged& it) {
        return fmt::format("limits: {} GPUs, {} drained", it.gpus_max.value_or(-1),
                           it.drained.size());
      },
      [](const model::AttemptFound& it) {
        return fmt::format("{} is found on machine {}", name(it.key), it.site.machine.value);
      },
      [](const model::CodeFound& it) {
        return fmt::format("code {} of {} attempts", it.code ? model::to_text(*it.code) : "unknown",
                           it.attempts.size());
      },
      [](const model::TimePassed&) { return std::string("time passed"); });
}

std::string words(const model::Change& change) {
  constexpr std::array<std::string_view, 6> kPhases{"is blocked", "runs",       "has finished",
                                                    "has failed", "is skipped", "is stopped"};
  return match(
      change,
      [](const model::TaskChanged& it) {
        std::string text = fmt::format("{} is {}", name(it.key), to_text(it.status));
        if (it.verdict != model::Verdict::None)
          text += fmt::format(", {}", model::to_text(it.verdict));
        if (it.failure != model::Failure::None)
          text += fmt::format(", {}", model::to_text(it.failure));
        if (!it.message.empty()) text += fmt::format(" ({})", it.message);
        return text;
      },
      [&](const model::GroupChanged& it) {
        return fmt::format("group {} {} {}", it.group.value,
                           kPhases.at(std::to_underlying(it.phase)), it.message);
      },
      [](const model::ReasonChanged& it) {
        return fmt::format("shape {} waits: \"{}\"", it.shape.value,
                           model::to_text(it.reason.cause));
      },
      [](const model::HeadroomSeen& it) {
        return fmt::format("there is {} of memory and {} mCPU to promise",
                           to_text(it.headroom.memory_free), it.headroom.cpus_free.milli);
      },
      [](const model::SharingMeasured& it) {
        return fmt::format("shape {}: {}", it.shape.value, model::sharing_text(it));
      },
      [](const model::Reached& it) {
        return fmt::format("task {} has reached {}, {} on GPUs{}", it.task.value,
                           to_text(it.memory), to_text(it.gpu_memory),
                           it.largest ? ", the largest for itself" : "");
      },
      [](const model::SaidOfTask& it) {
        return fmt::format("task {} {}, its priority is {}", it.task.value,
                           it.on_hold ? "is on hold" : "may start", it.priority.value_or(0));
      },
      [](const model::Learned& it) {
        return fmt::format("shape {} is given {}, {} on GPUs, as was learned of {}", it.shape.value,
                           to_text(it.memory), to_text(it.gpu_memory), it.tasks);
      });
}

std::string words(const model::Request& promise, const std::vector<model::GpuIndex>& gpus) {
  std::string text;
  for (const model::GpuIndex gpu : gpus) {
    text += fmt::format(", {} on GPU {}", to_text(promise.gpu_memory), gpu.value);
  }
  return text;
}

std::string words(const model::Command& command) {
  return match(
      command,
      [](const model::StartAttempt& it) {
        return fmt::format("start {} with {} and {} mCPU{}", name(it.key),
                           to_text(it.promise.memory), it.promise.cpus.milli,
                           words(it.promise, it.site.gpus));
      },
      [](const model::GrantDevice& it) {
        return fmt::format("train {} with {} and {} mCPU{}", name(it.key),
                           to_text(it.promise.memory), it.promise.cpus.milli,
                           words(it.promise, it.site.gpus));
      },
      [](const model::SignalAttempt& it) {
        return fmt::format("signal {} {}", it.signal, name(it.key));
      },
      [](const model::StopAttempt& it) {
        return fmt::format("{} {}", it.kill ? "KILL" : "TERM", name(it.key));
      },
      [](const model::Answer& it) {
        return fmt::format("answer request {}: {}", it.request, it.done ? "done" : "not running");
      });
}

}  // namespace

std::string to_text(const model::Turn& turn) {
  std::string text;
  for (std::size_t i = 0; i < turn.events.size(); ++i) {
    const model::Event& event = turn.events[i];
    text += fmt::format("{:>8} {}\n", event.at.since_start.count(), words(event.what));
    for (const model::Change& change : turn.decisions[i].changes) {
      text += fmt::format("           . {}\n", words(change));
    }
    for (const model::Command& command : turn.decisions[i].commands) {
      text += fmt::format("           > {}\n", words(command));
    }
  }
  return text;
}

}  // namespace trainyard::sim

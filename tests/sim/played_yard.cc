// The yards of sim/shared_world.h.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
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
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "model/turn.h"
#include "model/waiting.h"
#include "run/drive.h"
#include "run/machine.h"
#include "run/shared_ledger.h"
#include "schedule/scheduler.h"
#include "sim/shared_world.h"

namespace trainyard::sim {
namespace {

bool is_for_lack(const model::Reason& reason) {
  switch (reason.cause) {
    case model::Cause::Cpus:
    case model::Cause::Memory:
    case model::Cause::Gpus:
    case model::Cause::GivesWay:
      return true;
    default:
      return false;
  }
}

const model::Policy& policy_of_all() {
  static const model::Policy policy{
      .cpu_utilization_max = 1, .gpu_avoids_others = false, .gpu_memory_remain = Bytes{0}};
  return policy;
}

}  // namespace

model::Capacity capacity_of(const std::vector<std::size_t>& cards) {
  model::Capacity capacity{.memory = kHostMemory, .cpus = kHostCpus};
  for (const std::size_t card : cards) {
    capacity.gpus.push_back({.number = static_cast<int>(card),
                             .uuid = kUuids.at(card),
                             .pci = std::to_string(card),
                             .memory = kCardMemory});
  }
  return capacity;
}

std::vector<std::size_t> cards_of(std::size_t yard) {
  return yard == kYards - 1 ? std::vector<std::size_t>{2, 1} : std::vector<std::size_t>{0, 1, 2};
}

PlayedYard::PlayedYard(SharedWorld& world, std::size_t index, std::uint64_t its_life,
                       std::vector<Asked> tasks)
    : ticket(fmt::format("{:012}-{}", world.now().since_start.count(), its_life)),
      life(its_life),
      cards(cards_of(index)),
      world_(world),
      index_(index),
      tasks_(std::move(tasks)),
      ended_(tasks_.size()),
      scheduler_(policy_of_all()) {
  ledger_ = std::make_unique<run::SharedLedger>(world.board_of(*this), capacity_of(cards),
                                                run::SharedLedger::Options{.ticket = ticket});
  observers_.emplace_back([this](const model::Turn& turn) { see(turn); });
  loop_ = std::make_unique<run::Loop>(scheduler_, *this, recorder_, observers_);
  tell(model::MachineJoined{.machine = {}, .name = "made-up", .capacity = capacity_of(cards)});
  look_at_others();
  read_machine();
  auto plan = std::make_shared<model::Plan>();
  plan->groups.push_back({.name = "g"});
  for (std::uint32_t i = 0; i < tasks_.size(); ++i) {
    plan->shapes.push_back({.group = {0}, .terms = {.request = tasks_[i].request}});
    plan->tasks.push_back({.shape = {i}});
  }
  tell(model::BatchAdded{.number = 1, .plan = std::move(plan)});
}

void PlayedYard::tell(model::What what) {
  inbox_.push_back({.at = world_.now(), .what = std::move(what)});
}

void PlayedYard::read_machine() {
  if (auto seen = ledger_->look({.thorough = true})) tell(*std::move(seen));
  tell(world_.read_host(*this));
  tell(world_.read_cards(*this));
}

void PlayedYard::look_at_others() {
  if (!ledger_->is_worth_a_look()) return;
  if (auto seen = ledger_->look({.thorough = false})) tell(*std::move(seen));
}

std::vector<model::Event> PlayedYard::wait(std::optional<Instant> until) {
  if (inbox_.empty() && until && *until <= world_.now()) tell(model::TimePassed{});
  return std::exchange(inbox_, {});
}

void PlayedYard::carry_out(const model::Command& command) {
  if (dead) return;
  match(
      command,
      [this](const model::StartAttempt& it) {
        world_.start(*this, it.key, it.promise, it.site.gpus);
      },
      [](const model::GrantDevice&) {},
      [this](const model::StopAttempt& it) { world_.stop(*this, it.key); },
      [](const model::SignalAttempt&) {}, [](const model::Answer&) {});
}

std::optional<model::ClaimRefused> PlayedYard::claim(const run::Claim& claim) {
  std::optional<model::ClaimRefused> refused = ledger_->claim(claim);
  world_.outcome().refused += refused ? 1 : 0;
  return refused;
}

bool PlayedYard::turn() {
  const std::optional<Result<void>> end = loop_->turn();
  return end.has_value();
}

void PlayedYard::see(const model::Turn& turn) {
  if (dead) return;
  ledger_->see(turn);
  bool started = false;
  for (const model::Decision& decision : turn.decisions) {
    for (const model::Change& change : decision.changes) {
      if (const auto* const task = std::get_if<model::TaskChanged>(&change)) {
        if (task->verdict == model::Verdict::None) continue;
        ended_[task->key.task.value] = true;
        if (task->verdict == model::Verdict::Finished) ++world_.outcome().tasks;
        if (task->verdict != model::Verdict::Finished)
          world_.complain("a task has failed: " + task->message);
      } else if (const auto* const reason = std::get_if<model::ReasonChanged>(&change)) {
        const bool gives_way = reason->reason.cause == model::Cause::GivesWay;
        world_.outcome().gave_way += gives_way ? 1 : 0;
        if (is_for_lack(reason->reason)) reasons_[reason->shape] = reason->reason;
        if (!is_for_lack(reason->reason)) reasons_.erase(reason->shape);
      }
    }
    started = started || std::ranges::any_of(decision.commands, [](const model::Command& it) {
                return std::holds_alternative<model::StartAttempt>(it);
              });
  }
  if (reasons_.empty()) wants_since_.reset();
  if (!reasons_.empty() && (started || !wants_since_)) wants_since_ = world_.now();
}

std::vector<Asked> PlayedYard::left() const {
  std::vector<Asked> left;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    if (!ended_[i]) left.push_back(tasks_[i]);
  }
  return left;
}

}  // namespace trainyard::sim

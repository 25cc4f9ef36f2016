#include "run/remote_machines.h"

#include <algorithm>
#include <expected>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "run/machine_keys.h"
#include "sys/files.h"
#include "sys/token.h"

namespace trainyard::run {
namespace {

/// The grace of a keeper and what it takes to kill; and where there is nothing to end.
constexpr Duration kLeaveMax{25'000};
constexpr Duration kLeaveUnusedMax{2'000};
constexpr Duration kLook{100};

}  // namespace

/// Until each has done it, or has failed.
template <class Done>
Result<void> RemoteMachines::wait_for(Done done, const char* what) {
  const auto is_over = [&](const auto& it) { return !it->failure().empty() || done(*it); };
  const Duration end = sys::EventLoop::now() + kConnectMax;
  while (!std::ranges::all_of(machines_, is_over) && sys::EventLoop::now() < end) {
    loop_.run_once(kLook);
  }
  Error wrong;
  for (const auto& it : machines_) {
    if (it->failure().empty() && done(*it)) continue;
    wrong.add(fmt::format("{}: {}", it->name(), it->failure().empty() ? what : it->failure()));
  }
  if (wrong.message.empty()) return {};
  return std::unexpected(std::move(wrong));
}

Result<void> RemoteMachines::connect(std::vector<RemoteMachine::Options> machines) {
  for (RemoteMachine::Options& each : machines) add(std::move(each));
  return wait_for([](const RemoteMachine& it) { return it.hello() != nullptr; }, "no response");
}

RemoteMachine& RemoteMachines::add(RemoteMachine::Options machine) {
  const std::string key = machine.key;
  machines_.push_back(std::make_unique<RemoteMachine>(loop_, std::move(machine)));
  RemoteMachine& added = *machines_.back();
  if (begun_) {
    // The others are at work: it ends nothing.
    wire::AgentBegin begin = *begun_;
    begin.after = key;
    added.begin(std::move(begin));
  }
  if (on_added_) on_added_(added);
  added.connect();
  return added;
}

Result<void> RemoteMachines::look(std::vector<wire::AgentLook> questions) {
  check(questions.size() == machines_.size(), "a question for each");
  std::set<const RemoteMachine*> asked;
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    machines_[i]->look(std::move(questions[i]));
    asked.insert(machines_[i].get());
  }
  // A machine that is added meanwhile is not waited for.
  return wait_for(
      [&asked](const RemoteMachine& it) { return it.seen() != nullptr || !asked.contains(&it); },
      "no answer to the check of the machine");
}

Result<void> RemoteMachines::begin(wire::AgentBegin begin) {
  begin.proof = begin.run_directory + "/machines.proof";
  begin.token = sys::random_token();
  Result<void> written = sys::write_file_atomically(begin.proof, begin.token);
  if (!written) return written;
  const bool goes_on = !keys_of_others().empty();
  begun_ = std::move(begin);
  for (const auto& it : machines_) {
    wire::AgentBegin each = *begun_;
    // An agent of an earlier execution is running: only the agent itself ends its attempts.
    if (goes_on) each.after = it->key();
    it->begin(std::move(each));
  }
  Result<void> ready = wait_until_ready();
  if (!ready) return ready;
  MachineKeys keys;
  for (const auto& it : machines_) keys.insert_or_assign(it->name(), it->key());
  return write_machine_keys(begun_->run_directory, keys);
}

Result<void> RemoteMachines::wait_until_ready() {
  return wait_for([](const RemoteMachine& it) { return it.is_ready() && it.has_been_looked_at(); },
                  "its agent does not become ready");
}

std::vector<wire::AgentRun> RemoteMachines::found() const {
  std::vector<wire::AgentRun> found;
  for (const auto& it : machines_) {
    found.insert(found.end(), it->found().begin(), it->found().end());
  }
  return found;
}

Result<void> RemoteMachines::keep(const std::set<model::AttemptKey>& goes_on) {
  for (const auto& it : machines_) {
    if (!it->found().empty()) it->keep(goes_on);
  }
  return wait_until_ready();
}

std::vector<std::string> RemoteMachines::keys_of_others() const {
  std::vector<std::string> keys;
  for (const auto& it : machines_) {
    if (it->hello() != nullptr && it->hello()->begun) keys.push_back(it->key());
  }
  return keys;
}

std::vector<model::Capacity> RemoteMachines::capacities() const {
  std::vector<model::Capacity> all;
  all.reserve(machines_.size());
  for (const auto& it : machines_) {
    all.push_back(it->hello() != nullptr ? it->hello()->capacity : model::Capacity{});
  }
  return all;
}

std::optional<Duration> RemoteMachines::until() const {
  std::optional<Duration> last;
  for (const auto& machine : machines_) {
    const std::optional<Duration> until = machine->until();
    if (!until) return std::nullopt;
    last = std::max(last.value_or(*until), *until);
  }
  return last;
}

void RemoteMachines::let_pass(Duration time) {
  const Duration end = sys::EventLoop::now() + time;
  while (sys::EventLoop::now() < end) loop_.run_once(kLook);
}

void RemoteMachines::say_what_is_waited_for() const {
  for (const auto& machine : machines_) machine->say_what_is_waited_for();
}

void RemoteMachines::bring_the_rest(const std::function<bool()>& is_wanted) {
  for (const auto& it : machines_) it->bring_the_rest();
  const auto is_bringing = [](const auto& it) { return it->is_bringing(); };
  while (std::ranges::any_of(machines_, is_bringing) && is_wanted()) loop_.run_once(kLook);
  for (const auto& it : machines_) {
    if (it->is_bringing()) it->leave_the_rest();
  }
}

std::string RemoteMachines::names_with_files_left() const {
  std::string names;
  for (const auto& it : machines_) {
    if (!it->left().empty()) names += (names.empty() ? "" : ", ") + it->name();
  }
  return names;
}

void RemoteMachines::leave() {
  // If this run never became active, its running attempts may be found again.
  const auto was_at_work = [](const auto& it) { return it->index().has_value(); };
  const bool is_over = std::ranges::any_of(machines_, was_at_work);
  for (const auto& it : machines_) it->leave();
  const Duration most = begun_ ? kLeaveMax : kLeaveUnusedMax;
  const Duration end = sys::EventLoop::now() + most;
  const auto has_left = [](const auto& it) { return it->has_left(); };
  while (!std::ranges::all_of(machines_, has_left) && sys::EventLoop::now() < end) {
    loop_.run_once(kLook);
  }
  std::error_code ignored;
  if (begun_) std::filesystem::remove(begun_->proof, ignored);
  if (begun_ && is_over) remove_machine_keys(begun_->run_directory);
  machines_.clear();
}

}  // namespace trainyard::run

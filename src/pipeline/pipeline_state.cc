#include "pipeline/pipeline_state.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <ranges>
#include <stdexcept>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "pipeline/bus_state.h"

namespace trainyard {

void pipeline::ListenerErrors::add(std::string_view event, const std::exception_ptr& error) {
  const std::scoped_lock lock(mutex_);
  if (errors_.size() < kMost) {
    errors_.push_back(pipeline::step_error(fmt::format("event '{}'", event), error));
  }
  any_ = true;
}

void pipeline::ListenerErrors::take(std::vector<StepError>& errors) {
  const std::scoped_lock lock(mutex_);
  std::ranges::move(errors_, std::back_inserter(errors));
  errors_.clear();
  any_ = false;
}

void pipeline::RunEnd::begin_run() {
  const std::scoped_lock lock(mutex_);
  finishing_ = false;
  if (ending_.stop_requested()) ending_ = std::stop_source();
}

void pipeline::RunEnd::forget_failure() {
  const std::scoped_lock lock(mutex_);
  if (!finishing_ && ending_.stop_requested()) ending_ = std::stop_source();
}

void pipeline::RunEnd::finish(std::string why, Outcome outcome) {
  {
    const std::scoped_lock lock(mutex_);
    if (finishing_) return;
    why_ = std::move(why);
    outcome_ = outcome;
    finishing_ = true;
  }
  wake();
}

std::string pipeline::RunEnd::why() const {
  const std::scoped_lock lock(mutex_);
  return why_;
}

Outcome pipeline::RunEnd::outcome() const {
  const std::scoped_lock lock(mutex_);
  return outcome_;
}

std::stop_token pipeline::RunEnd::token() const {
  const std::scoped_lock lock(mutex_);
  return ending_.get_token();
}

void pipeline::RunEnd::wake() {
  const auto ending = [this] {
    const std::scoped_lock lock(mutex_);
    return ending_;
  };
  ending().request_stop();  // Without the lock: it calls those who wait.
}

namespace {

using detail::StepKind;
using detail::StepRules;
using detail::StepTree;

std::vector<std::string> labels_of(const PipelineOptions& options) {
  std::vector<std::string> labels{options.node ? "distributed" : "standalone",
                                  fmt::format("node.{}", options.node.value_or(0))};
  if (options.async) labels.emplace_back("async");
  labels.insert(labels.end(), options.labels.begin(), options.labels.end());
  return labels;
}

void add_to(StepRules& mine, StepRules more) {
  const auto append = [](auto& to, auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  append(mine.reads, more.reads);
  append(mine.writes, more.writes);
  append(mine.where, more.where);
  append(mine.roles, more.roles);
  if (!std::holds_alternative<NoLock>(more.lock)) mine.lock = more.lock;
}

bool has_parallel(const pipeline::BoundStep& step) {
  return step.kind == StepKind::Parallel ||
         std::ranges::any_of(step.parts, [](const auto& part) { return has_parallel(*part); });
}

bool is_two_way(const pipeline::BoundStep& step) {
  return (step.node != nullptr && step.node->is_two_way()) ||
         std::ranges::any_of(step.parts, [](const auto& part) { return is_two_way(*part); });
}

void ended(pipeline::BoundStep& step, Context& context) {
  for (const auto& part : std::views::reverse(step.parts)) ended(*part, context);
  if (step.node) step.node->ended(context);
}

/// On one thread, and none of its steps.
class Running {
 public:
  explicit Running(bool& running) : running_(running) { running_ = true; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() { running_ = false; }

 private:
  bool& running_;
};

}  // namespace

PipelineState::PipelineState(PipelineOptions options, Context& context, RenewContext renew_context)
    : options_(std::move(options)),
      context_(context),
      renew_context_(renew_context),
      surroundings_{.labels = labels_of(options_),
                    .roles = options_.roles,
                    .is_alone = !options_.node.has_value(),
                    .shared_lock = &shared_lock_,
                    .pipeline = this},
      events_([this](std::string_view event, const std::exception_ptr& error) {
        listener_failed(event, error);
      }),
      caller_(events_) {}

PipelineState::~PipelineState() { close(); }

void PipelineState::close() {
  const detail::BusState::WhileItFails fails(*events_.state_);
  drop_all();
  events_.stop();
  events_.end();
  // No later run could report them.
  errors_.clear();
  listener_errors_.take(errors_);
  if (!errors_.empty()) {
    std::fputs(fmt::format("trainyard: {}\n", Failure{.errors = errors_}.text()).c_str(), stderr);
  }
}

void PipelineState::add(std::string name, StepTree tree, StepRules rules) {
  if (running_) throw std::logic_error("a step is added while the pipeline runs");
  if (tree.kind == StepKind::None) return;
  add_to(tree.rules, std::move(rules));
  names_.push_back(pipeline::unused_name(std::move(name), tree, names_.size() + 1, names_));
  added_.emplace_back(names_.back(), std::move(tree));
}

void PipelineState::add(pipeline::StepCaller::Wrapper wrapper) {
  if (running_) throw std::logic_error("a wrapper is added while the pipeline runs");
  caller_.add(std::move(wrapper));
  arranged_ = false;
}

bool PipelineState::start() {
  for (auto& [name, tree] : added_) {
    auto bound = pipeline::bind_step(std::move(tree), name, surroundings_, mistakes_);
    if (bound) steps_.push_back(std::move(bound));
  }
  if (!added_.empty()) arranged_ = false;
  added_.clear();
  nested_.bind_new(surroundings_, mistakes_);
  if (!arranged_) arrange();
  errors_.insert(errors_.end(), mistakes_.begin(), mistakes_.end());
  return mistakes_.empty();
}

void PipelineState::arrange() {
  has_two_way_ = std::ranges::any_of(steps_, [](const auto& step) { return is_two_way(*step); });
  arranged_ = true;
  there_.clear();
  back_.clear();
  for (const auto& step : steps_) {
    const bool bare = step->is_bare() && !caller_.has_wrappers();
    there_.push_back({.step = step.get(), .bare = bare ? step->node.get() : nullptr});
  }
  for (const Place& place : std::views::reverse(there_)) {
    // One that calls nested steps leaves it to them what goes its way back.
    if (!nested_.empty() || is_two_way(*place.step)) back_.push_back(place);
  }
  if (options_.async) {
    const auto pairs = pipeline::conflicts(steps_, context_);
    forward_side_by_side_.emplace(steps_.size(), pairs, pipeline::SideBySide::Order::Upward);
    backward_side_by_side_.emplace(steps_.size(), pairs, pipeline::SideBySide::Order::Downward);
    step_errors_.resize(steps_.size());
  }
  const bool parallel =
      std::ranges::any_of(steps_, [](const auto& step) { return has_parallel(*step); });
  if (options_.async || parallel) workers();
}

PipelineState::Workers& PipelineState::workers() {
  const std::scoped_lock lock(mutex_);
  if (!workers_) {
    workers_ = std::make_unique<Workers>(std::max(0, options_.n_async_workers), events_);
    caller_.use(&workers_->pool);
  }
  return *workers_;
}

RunResult PipelineState::run(RunLimits limits, const std::stop_token& stop) {
  refuse_in_a_step();
  drop_all();  // Steps that were begun by hand.
  if (!start() || !errors_.empty()) return failed(0);
  if (steps_.empty()) return end(Outcome::Finished, 0, "no step is placed here");
  const Running running(running_);
  end_->begin_run();
  for (const auto& [begins, ends] : around_runs_) begins();
  return iterate(limits, stop);
}

RunResult PipelineState::iterate(RunLimits limits, const std::stop_token& stop) {
  std::uint64_t steps = 0;
  const std::stop_callback at_stop(stop, [this] { end_->wake(); });
  while (steps < limits.max_steps) {
    if (stop.stop_requested()) {
      // Whoever ends it as failed may ask to stop after that.
      return finishing() ? end(end_->outcome(), steps, end_->why())
                         : end(Outcome::Stopped, steps, "asked to stop");
    }
    if (done_ && !next_context()) return failed(steps);
    context_.last = steps + 1 == limits.max_steps;
    if (!all_forward() || !sync()) return failed(steps);
    if (finishing() || stop.stop_requested()) context_.last = true;
    if (!all_backward() || !sync() || !tell_iteration()) return failed(steps);
    done_ = true;
    ++steps;
    if (finishing()) return end(end_->outcome(), steps, end_->why());
  }
  return end(Outcome::MaxSteps, steps, {});
}

bool PipelineState::tell_iteration() {
  // A wrapper may have left a way back out.
  if (caller_.has_wrappers()) drop_steps();
  caller_.raised().forget();
  try {
    for (const auto& told : iteration_listeners_) told(context_);
  } catch (...) {
    return fail("iteration");
  }
  return true;
}

RunResult PipelineState::end(Outcome outcome, std::uint64_t steps, std::string why) {
  end_->end_run();
  if (steps > 0) {
    for (const auto& step : std::views::reverse(steps_)) {
      try {
        ended(*step, context_);
      } catch (...) {
        errors_.push_back(pipeline::step_error(step->path + " (ended)", std::current_exception()));
      }
    }
    if (listener_errors_.any()) fail_by_listener();
  }
  if (outcome == Outcome::Failed && errors_.empty()) {
    errors_.push_back({.message = why, .error = std::make_exception_ptr(std::runtime_error(why))});
  }
  if (!errors_.empty()) return failed(steps);
  return {.outcome = outcome, .steps = steps, .why = std::move(why)};
}

RunResult PipelineState::failed(std::uint64_t steps) {
  end_->end_run();
  Failure failure{.errors = take_errors()};
  return {.outcome = Outcome::Failed,
          .steps = steps,
          .why = failure.text(),
          .errors = std::move(failure.errors)};
}

void PipelineState::refuse_in_a_step() const {
  if (running_) throw std::logic_error("a step drives the pipeline that runs it");
}

bool PipelineState::next_context() {
  try {
    renew_context_(context_);
  } catch (...) {
    return fail("renew");
  }
  done_ = false;
  return true;
}

bool PipelineState::all_forward() {
  return forward_side_by_side_ ? side_by_side(*forward_side_by_side_, Phase::Forward)
                               : forward_in_order();
}

bool PipelineState::all_backward() {
  return backward_side_by_side_ ? side_by_side(*backward_side_by_side_, Phase::Backward)
                                : backward_in_order();
}

bool PipelineState::renew() {
  refuse_in_a_step();
  drop_all();
  return errors_.empty() && next_context();
}

bool PipelineState::forward() {
  refuse_in_a_step();
  if (!start()) return false;
  const Running running(running_);
  end_->forget_failure();
  done_ = false;
  drop_steps();
  return all_forward();
}

bool PipelineState::backward() {
  refuse_in_a_step();
  const Running running(running_);
  if (!by_hand_backward() || !all_backward() || !tell_iteration()) return false;
  done_ = true;
  return true;
}

bool PipelineState::by_hand_backward() {
  while (!by_hand_.empty()) {
    const auto [step, context] = std::move(by_hand_.back());
    by_hand_.pop_back();
    try {
      if (step->waits()) caller_.call(*step, Phase::Backward, *context);
    } catch (...) {
      step->drop();
      return fail(step->path);
    }
  }
  return true;
}

bool PipelineState::forward_in_order() {
  const pipeline::RunningHere here;
  auto at = there_.begin();
  try {
    for (const auto end = there_.end(); at != end; ++at) {
      if (listener_errors_.any()) [[unlikely]]
        return fail_by_listener();
      if (at->bare != nullptr) {
        pipeline::RunningHere::is(*at->step);  // A nested one asks who calls it.
        at->bare->forward(context_);
      } else {
        caller_.call(*at->step, Phase::Forward, context_);
      }
    }
  } catch (...) {
    return fail(at->step->path);
  }
  return true;
}

bool PipelineState::backward_in_order() {
  const pipeline::RunningHere here;
  auto at = back_.begin();
  try {
    for (const auto end = back_.end(); at != end; ++at) {
      if (listener_errors_.any()) [[unlikely]]
        return fail_by_listener();
      if (at->bare != nullptr && at->step->nested.empty()) {
        pipeline::RunningHere::is(*at->step);
        at->bare->backward(context_);
        if (at->step->nested.empty()) continue;
      }
      if (at->step->waits()) caller_.call(*at->step, Phase::Backward, context_);
    }
  } catch (...) {
    return fail(at->step->path);
  }
  return listener_errors_.any() ? fail_by_listener() : true;
}

bool PipelineState::side_by_side(pipeline::SideBySide& order, Phase phase) {
  if (phase == Phase::Backward && !has_two_way_ &&
      std::ranges::all_of(steps_, [](const auto& step) { return step->nested.empty(); })) {
    return listener_errors_.any() ? fail_by_listener() : true;
  }
  WaitsCutShort failed(events_);
  const auto one = [&](std::size_t part) {
    pipeline::BoundStep& step = *steps_[part];
    if (listener_errors_.any()) return false;
    try {
      if (phase == Phase::Forward || step.waits()) caller_.call(step, phase, context_);
      return true;
    } catch (...) {
      step_errors_[part] = std::current_exception();
      failed.begin();
      end_->wake();
      return false;
    }
  };
  order.run(workers_ ? &workers_->pool : nullptr, pipeline::SideBySide::Do(one));
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const std::exception_ptr error = std::exchange(step_errors_[i], nullptr);
    if (!error) continue;
    for (StepError& known : caller_.raised().errors_of(error, steps_[i]->path)) {
      errors_.push_back(std::move(known));
    }
  }
  if (listener_errors_.any()) return fail_by_listener();
  if (errors_.empty()) return true;
  drop_all();
  return false;
}

bool PipelineState::sync() {
  if (!workers_ || workers_->background.idle()) return true;
  errors_ = workers_->background.finish();
  if (errors_.empty()) return true;
  drop_all();
  return false;
}

bool PipelineState::fail(const std::string& step) {
  errors_ = caller_.raised().errors_of(std::current_exception(), step);
  if (listener_errors_.any()) listener_errors_.take(errors_);
  drop_all();
  return false;
}

bool PipelineState::fail_by_listener() {
  listener_errors_.take(errors_);
  drop_all();
  return false;
}

void PipelineState::drop_all() noexcept {
  // Work that runs next to the steps may use their values.
  if (workers_ && !workers_->background.idle()) {
    WaitsCutShort failed(events_);
    failed.begin();
    for (StepError& error : workers_->background.finish()) errors_.push_back(std::move(error));
  }
  while (!by_hand_.empty()) {
    by_hand_.back().step->drop();
    by_hand_.pop_back();
  }
  drop_steps();
  caller_.raised().forget();
}

void PipelineState::drop_steps() noexcept {
  for (const auto& step : std::views::reverse(steps_)) step->drop();
}

void PipelineState::listener_failed(std::string_view event, const std::exception_ptr& error) {
  if (options_.on_listener_error) return options_.on_listener_error(event, error);
  listener_errors_.add(event, error);
  end_->wake();  // A step that waits meanwhile would hold up the failure.
}

bool PipelineState::forward_one(std::string name, StepTree tree, Context& context) {
  refuse_in_a_step();
  if (tree.kind == StepKind::None) return true;
  const Running running(running_);
  auto step = pipeline::bind_step(std::move(tree), std::move(name), surroundings_, errors_);
  if (!errors_.empty()) return false;
  if (!step) return true;
  if (has_parallel(*step)) workers();
  by_hand_.push_back({.step = std::move(step), .context = &context});
  pipeline::BoundStep& bound = *by_hand_.back().step;
  try {
    caller_.call(bound, Phase::Forward, context);
  } catch (...) {
    return fail(bound.path);
  }
  return true;
}

std::size_t PipelineState::add_nested(std::string name, pipeline::NestedSteps::MakeTree make,
                                      StepRules rules) {
  if (running_) throw std::logic_error("a nested step is added while the pipeline runs");
  names_.push_back(pipeline::unused_name(std::move(name), {}, names_.size() + 1, names_));
  arranged_ = false;
  return nested_.add(names_.back(), std::move(make), std::move(rules));
}

pipeline::NestedCall& PipelineState::call_nested(std::size_t nested, Context& context) {
  pipeline::BoundStep* const caller = pipeline::StepCaller::running();
  pipeline::NestedCall& call = nested_.take(nested, caller, surroundings_);
  call.context = &context;
  caller->nested.push_back(&call);  // So that it is given back, whatever fails.
  pipeline::check_locks_of_callers(*call.step);
  if (has_parallel(*call.step)) workers();
  caller_.call(*call.step, Phase::Forward, context);
  return call;
}

void PipelineState::async(std::string name, std::function<void()> job) {
  workers().background.add(std::move(name), std::move(job));
}

}  // namespace trainyard

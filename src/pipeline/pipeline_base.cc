#include "trainyard/pipeline_base.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "pipeline/pipeline_state.h"

namespace trainyard {

std::string_view to_text(Outcome outcome) {
  static constexpr std::array<std::string_view, 4> kWords{"max steps", "finished", "stopped",
                                                          "failed"};
  return kWords.at(static_cast<std::size_t>(outcome));
}

std::string Failure::text() const {
  std::string text;
  for (const StepError& error : errors) {
    if (!text.empty()) text += '\n';
    if (error.step.empty()) {
      text += error.message;
      continue;
    }
    const bool is_step =
        !error.step.starts_with("event ") && error.step != "renew" && error.step != "iteration";
    text += is_step ? fmt::format("step '{}': {}", error.step, error.message)
                    : fmt::format("{}: {}", error.step, error.message);
  }
  return text;
}

PipelineBase::PipelineBase(PipelineOptions options, Context& context, RenewContext renew_context)
    : state_(std::make_unique<PipelineState>(std::move(options), context, renew_context)) {}

PipelineBase::~PipelineBase() = default;

RunResult PipelineBase::run(RunLimits limits, const std::stop_token& stop) {
  RunResult result = state_->run(limits, stop);
  state_->tell_end(result);
  return result;
}

void PipelineBase::finish(std::string why) { state_->finish(std::move(why)); }

PipelineBase::Finisher PipelineBase::finisher() const { return state_->finisher(); }

std::stop_token PipelineBase::ending() { return state_->ending(); }

void PipelineBase::add_iteration_listener(std::function<void(const Context&)> told) {
  state_->add(std::move(told));
}

void PipelineBase::around_runs(RunBegins begins, RunEnds ends) {
  state_->around_runs(std::move(begins), std::move(ends));
}

bool PipelineBase::finishing() const { return state_->finishing(); }

namespace {

PipelineBase::Done done(PipelineState& state, bool well) {
  if (well) return {};
  return std::unexpected(Failure{.errors = state.take_errors()});
}

}  // namespace

PipelineBase::Done PipelineBase::forward() { return done(*state_, state_->forward()); }

PipelineBase::Done PipelineBase::backward() { return done(*state_, state_->backward()); }

PipelineBase::Done PipelineBase::renew() { return done(*state_, state_->renew()); }

PipelineBase::Done PipelineBase::sync() { return done(*state_, state_->sync()); }

PipelineBase::Done PipelineBase::forward_one(std::string name, detail::StepTree tree,
                                             Context& context) {
  return done(*state_, state_->forward_one(std::move(name), std::move(tree), context));
}

void PipelineBase::async(std::string name, std::function<void()> job) {
  state_->async(std::move(name), std::move(job));
}

EventBus& PipelineBase::events() { return state_->events(); }

bool PipelineBase::has_role(Role role) const {
  return pipeline::has_role(state_->surroundings(), role);
}

bool PipelineBase::match_labels(const std::vector<std::string>& patterns) const {
  return pipeline::match_any(patterns, state_->surroundings().labels);
}

const std::vector<std::string>& PipelineBase::labels() const {
  return state_->surroundings().labels;
}

void PipelineBase::add(std::string name, detail::StepTree tree, detail::StepRules rules) {
  state_->add(std::move(name), std::move(tree), std::move(rules));
}

void PipelineBase::add_wrapper(Wrapper wrapper) { state_->add(std::move(wrapper)); }

std::size_t PipelineBase::add_nested(std::string name, MakeTree make, detail::StepRules rules) {
  return state_->add_nested(std::move(name), std::move(make), std::move(rules));
}

WayBack PipelineBase::call_nested(std::size_t nested, Context& context) {
  pipeline::NestedCall& call = state_->call_nested(nested, context);
  WayBack back;
  back.call_ = &call;
  back.number_ = call.number;
  return back;
}

void PipelineBase::close() { state_->close(); }

void PipelineBase::set_done() { state_->set_done(); }

void WayBack::operator()() {
  auto* const call = static_cast<pipeline::NestedCall*>(std::exchange(call_, nullptr));
  if (call == nullptr || !call->taken || call->number != number_) return;
  call->step->pipeline->call_back(*call);
}

}  // namespace trainyard

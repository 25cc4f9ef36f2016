// Events of a rank executor: down to its ranks, and up to its handlers.
#include <algorithm>
#include <exception>
#include <functional>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "pipeline/trouble.h"
#include "ranks/context_access.h"
#include "ranks/rank_executor_state.h"
#include "trainyard/buffer.h"
#include "trainyard/component.h"
#include "trainyard/return_code.h"
#include "wire/field_reader.h"

namespace trainyard {
namespace {

/// Handlers that wait for what they have fired, each within the one before.
constexpr int kHandlingMax = 100;

std::string data_text(const Json& value) {
  return value.is_null() ? std::string() : wire::fields_text(value);
}

/// The link of a context that handlers get.
class ParentLink final : public detail::RankLink {
 public:
  ParentLink(std::function<EventOutcome(RankContext&, std::string_view, const Json&)> fire,
             std::shared_ptr<ranks::SharedArenas> arenas)
      : fire_(std::move(fire)), arenas_(std::move(arenas)) {}
  Result<Buffer> alloc(DType type, Dimensions shape) override {
    return arenas_->alloc(type, std::move(shape));
  }
  EventOutcome fire(RankContext& context, std::string_view event, const Json& data,
                    Audience) override {
    return fire_(context, event, data);
  }

 private:
  std::function<EventOutcome(RankContext&, std::string_view, const Json&)> fire_;
  std::shared_ptr<ranks::SharedArenas> arenas_;
};

}  // namespace

std::shared_ptr<ranks::RankGroup> RankExecutor::State::current() {
  const std::scoped_lock lock(mutex);
  return group;
}

EventOutcome RankExecutor::State::fire(std::string_view event, const Json& data,
                                       RankContext& context) {
  if (auto why_not = refused(event, data)) return *std::move(why_not);
  if (auto why = why_not_here()) {
    return {.code = ReturnCode::LaunchFailed, .message = *std::move(why)};
  }
  // An event that a handler fires, by its context or by us, is in reaction to the event that it
  // handles.
  const detail::RankPosition& position = ContextAccess::position(context);
  const int depth = position.link == nullptr ? 0 : position.depth + 1;
  if (depth > wire::kEventDepthMax) {
    return {.code = ReturnCode::ExecutionException,
            .message = fmt::format("event '{}': a cycle of events", event)};
  }
  const std::shared_ptr<ranks::RankGroup> to = current();
  if (to == nullptr) return {};
  ranks::RankGroup::Heard heard = to->fire(
      {.name = std::string(event), .data = data_text(data), .depth = depth}, context, std::nullopt);
  take_in(context, heard.changes);
  return {.code = heard.verdict.code,
          .message = std::move(heard.verdict.why),
          .errors = std::move(heard.errors)};
}

EventOutcome RankExecutor::State::fire_from_outside(std::string_view event, const Json& data,
                                                    RankContext& context) {
  if (event == kStartRun || event == kEndRun) {
    return {.code = ReturnCode::BadTaskData,
            .message = fmt::format("event '{}': it is fired by start() and finalize()", event)};
  }
  return has_started ? fire(event, data, context) : EventOutcome{};
}

/// Counts those within.
class RankExecutor::State::Within {
 public:
  explicit Within(State& state) : state_(state), too_deep_(one_more(state) > kHandlingMax) {}
  Within(Within&&) = delete;
  Within& operator=(Within&&) = delete;
  ~Within() {
    const std::scoped_lock lock(state_.mutex);
    --state_.handling;
    state_.over.notify_all();
  }
  /// A handler that fires with a context of its own begins a cycle anew each time.
  [[nodiscard]] bool too_deep() const { return too_deep_; }

 private:
  static int one_more(State& state) {
    const std::scoped_lock lock(state.mutex);
    return ++state.handling;
  }
  State& state_;
  bool too_deep_;
};

wire::EventDone RankExecutor::State::heard(int rank, const wire::EventWord& word) {
  const Within within(*this);
  wire::EventDone done;
  if (within.too_deep()) {
    done.errors.push_back(fmt::format("event '{}': a cycle of events", word.name));
    return done;
  }
  RankContext context = run_context.sibling();
  done.errors = ContextAccess::merge(context, word.context);
  ContextAccess::set_position(
      context, {.ranks = options.ranks,
                .from_rank = rank,
                .depth = word.depth,
                .link = std::make_shared<ParentLink>(
                    [this](RankContext& from, std::string_view event, const Json& data) {
                      return fire(event, data, from);
                    },
                    arenas)});
  const Json data =
      word.data.empty() ? Json() : Json::parse(word.data, nullptr, /*allow_exceptions=*/false);
  for (const Handler& handler : handlers) {
    try {
      handler({.name = word.name, .data = data, .from_rank = rank}, context);
    } catch (...) {
      done.errors.push_back(pipeline::full_text_of(std::current_exception()));
    }
  }
  if (const std::shared_ptr<ranks::RankGroup> to = current(); word.to_group && to != nullptr) {
    wire::EventWord onwards = word;
    onwards.from_rank = rank;
    ranks::RankGroup::Heard others = to->fire(std::move(onwards), context, rank);
    take_in(context, others.changes);
    if (others.verdict.code != ReturnCode::Ok) done.errors.push_back(others.verdict.why);
    std::ranges::move(others.errors, std::back_inserter(done.errors));
  }
  done.context = ContextAccess::own_changes(context);
  return done;
}

}  // namespace trainyard

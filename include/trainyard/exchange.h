// Steps that carry members of the context, and models, between workers of different roles
// (DI-engine `ContextExchanger`, `ModelExchanger`, `PeriodicalModelExchanger`):
//
//   loop.use("exchange", trainyard::Exchange<Train>(worker, loop)
//                            .append<&Train::trajectories>(role::kCollector)
//                            .add<&Train::env_step>(role::kCollector)
//                            .set<&Train::train_iter>(role::kLearner)
//                            .waits_for(role::kLearner, role::kCollector, 60s));
//   loop.use("send model", trainyard::SendModel<Train>(worker, loop, "policy", weights_of));
//   loop.use("use model", trainyard::UseModel<Train>(worker, loop, "policy", set_weights));
//
// On the way forward what has come is merged into the context, on the way back the context's is
// sent. A worker hears the roles that it does not have. Alone, and in a worker of no role, they do
// nothing. What belongs to one iteration of a sender arrives together. Waits end when the run is to
// end. A deadline fails the step, and so does, at once, that nobody is left who could send: all of
// the role have ended, or there is none, or the topology is between. The error names the workers.
//
// Steps: of the thread of their pipeline. Includes all of nlohmann/json.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "trainyard/buffer.h"
#include "trainyard/context.h"
#include "trainyard/context_json.h"
#include "trainyard/detail/codec.h"
#include "trainyard/detail/inbox.h"
#include "trainyard/pipeline.h"
#include "trainyard/pipeline_base.h"
#include "trainyard/remote_event.h"
#include "trainyard/result.h"
#include "trainyard/step_options.h"
#include "trainyard/timeout.h"
#include "trainyard/worker.h"

namespace trainyard {

namespace detail {

template <class T>
inline constexpr bool kIsNumbers = false;
template <class T>
inline constexpr bool kIsNumbers<std::vector<T>> =
    std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

/// Numbers go as buffers, all else as JSON.
template <class T>
void put_member(std::string_view name, const T& value, nlohmann::json& object, Bundle& bundle) {
  if constexpr (std::is_same_v<T, Buffer> || kIsNumbers<T>) {
    object[std::string(name)] = bundle.buffers.size();
    if constexpr (std::is_same_v<T, Buffer>) {
      bundle.buffers.push_back(value);
    } else {
      using Number = typename T::value_type;
      bundle.buffers.push_back(Buffer::copy_of<Number>({static_cast<std::int64_t>(value.size())},
                                                       std::span<const Number>(value)));
    }
  } else if constexpr (std::is_floating_point_v<T>) {
    object[std::string(name)] = number_to_json(static_cast<double>(value));  // Infinity, too.
  } else {
    object[std::string(name)] = value;
  }
}

/// Throws where the bundle has no such buffer.
inline const Buffer& buffer_at(const nlohmann::json& value, const Bundle& bundle) {
  const auto place = integer_from_json<std::size_t>(value);
  if (!place || *place >= bundle.buffers.size()) {
    throw std::runtime_error(misfit_text(value, "not the index of one of the " +
                                                    std::to_string(bundle.buffers.size()) +
                                                    " buffers that came with it"));
  }
  return bundle.buffers[*place];
}

/// Throws where what came does not fit the member.
template <class T>
T get_member(const nlohmann::json& value, const Bundle& bundle) {
  if constexpr (std::is_same_v<T, Buffer>) {
    return buffer_at(value, bundle);
  } else if constexpr (kIsNumbers<T>) {
    const auto numbers = buffer_at(value, bundle).template as<typename T::value_type>();
    return T(numbers.begin(), numbers.end());
  } else if constexpr (std::is_floating_point_v<T> || kIsInteger<T>) {
    const auto number = number_that_fits<T>(value);
    if (!number) throw std::runtime_error(misfit_text(value, number.error().message));
    return *number;
  } else {
    return value.get<T>();
  }
}

/// Adds it to the member. Throws where the sum does not fit a signed integer. Unsigned ones wrap,
/// so that a member of these may also get smaller.
template <class T>
void add_to_member(T& member, const nlohmann::json& value, const Bundle& bundle) {
  const T more = get_member<T>(value, bundle);
  if constexpr (kIsInteger<T> && std::is_signed_v<T>) {
    T sum{};
    if (__builtin_add_overflow(member, more, &sum)) {
      throw std::runtime_error(misfit_text(
          value, "with " + std::to_string(member) + " it makes no integer of its size"));
    }
    member = sum;
  } else {
    member += more;
  }
}

/// One role of a worker is what it is here: it sends as that.
inline bool sends_as(const Worker& worker, Role role) {
  return !worker.is_alone() && !worker.roles().empty() && worker.has_role(role);
}

inline bool hears_of(const Worker& worker, Role role) {
  return !worker.is_alone() && !worker.roles().empty() && !worker.has_role(role);
}

}  // namespace detail

template <ContextType C>
class Exchange {
 public:
  /// `name` where one pipeline has several.
  Exchange(Worker worker, Pipeline<C>& loop, std::string name = "exchange")
      : worker_(std::move(worker)), loop_(&loop), name_(std::move(name)) {}

  /// The list of a worker of that role is appended to those of the others, and is empty in the next
  /// iteration as its context makes it anew.
  template <auto Member>
  Exchange&& append(Role from) && {
    return std::move(append<Member>(from));
  }
  template <auto Member>
  Exchange& append(Role from) & {
    using T = detail::MemberOf<Member>;
    add_member({.name = detail::member_name<Member>(),
                .put = put_whole<Member>,
                .merge =
                    [](C& context, const nlohmann::json& value, const detail::Bundle& bundle) {
                      T more = detail::get_member<T>(value, bundle);
                      T& to = context.*Member;
                      to.insert(to.end(), std::make_move_iterator(more.begin()),
                                std::make_move_iterator(more.end()));
                    }},
               from);
    return *this;
  }
  /// By how much the number has grown since the run began is added to those of the others. What it
  /// was before, as of a context that has been resumed, is not sent. A sum that does not fit a
  /// signed integer fails the step.
  template <auto Member>
  Exchange&& add(Role from) && {
    return std::move(add<Member>(from));
  }
  template <auto Member>
  Exchange& add(Role from) & {
    using T = detail::MemberOf<Member>;
    static_assert(std::is_arithmetic_v<T>, "what is added is a number");
    const auto sent = std::make_shared<T>();
    loop_->around_runs(
        [sent, loop = loop_, is_first = true]() mutable {
          if (std::exchange(is_first, false)) *sent = loop->context().*Member;
        },
        [](const RunResult&) {});
    add_member(
        {.name = detail::member_name<Member>(),
         .put =
             [sent](C& context, std::string_view name, nlohmann::json& object, detail::Bundle&) {
               const T now = context.*Member;
               object[std::string(name)] = static_cast<T>(now - std::exchange(*sent, now));
             },
         .merge =
             [](C& context, const nlohmann::json& value, const detail::Bundle& bundle) {
               detail::add_to_member(context.*Member, value, bundle);
             }},
        from);
    return *this;
  }
  /// The last value takes the place of those of the others.
  template <auto Member>
  Exchange&& set(Role from) && {
    return std::move(set<Member>(from));
  }
  template <auto Member>
  Exchange& set(Role from) & {
    using T = detail::MemberOf<Member>;
    add_member({.name = detail::member_name<Member>(),
                .put = put_whole<Member>,
                .merge =
                    [](C& context, const nlohmann::json& value, const detail::Bundle& bundle) {
                      context.*Member = detail::get_member<T>(value, bundle);
                    }},
               from);
    return *this;
  }
  /// A worker of the first role goes on when something has come of one with the other.
  Exchange&& waits_for(Role who, Role from, Timeout within) && {
    return std::move(waits_for(who, from, within));
  }
  Exchange& waits_for(Role who, Role from, Timeout within) & {
    if (!detail::sends_as(worker_, who)) return *this;
    for (Side& side : sides_) {
      if (side.role == from) side.within = within;
    }
    return *this;
  }

  void forward(C& context) {
    for (Side& side : sides_) {
      if (!detail::hears_of(worker_, side.role)) continue;
      if (side.within.time().count() > 0) {
        const Result<bool> there = side.inbox.wait(side.within, loop_->ending());
        if (!there && !loop_->ending().stop_requested()) {
          throw std::runtime_error(there.error().message);
        }
      }
      for (const detail::Bundle& bundle : side.inbox.take()) merge(side, context, bundle);
    }
  }

  void backward(C& context) {
    for (Side& side : sides_) {
      if (!detail::sends_as(worker_, side.role)) continue;
      detail::Bundle bundle;
      nlohmann::json object = nlohmann::json::object();
      for (const Member& each : side.members) each.put(context, each.name, object, bundle);
      bundle.json = detail::json_text_of(object);
      detail::emit_bundle(loop_->events(), event_of(side.role), bundle, false);
    }
  }

 private:
  struct Member {
    std::string_view name;
    std::function<void(C&, std::string_view name, nlohmann::json& object, detail::Bundle&)> put;
    std::function<void(C&, const nlohmann::json& value, const detail::Bundle&)> merge;
  };
  /// The sending side of one role.
  struct Side {
    Role role;
    std::vector<Member> members = {};
    detail::Inbox inbox = {};
    Timeout within = std::chrono::milliseconds(0);
  };

  [[nodiscard]] std::string event_of(Role role) const {
    return name_ + "." + std::string(role.name);
  }

  template <auto Whole>
  static void put_whole(C& context, std::string_view name, nlohmann::json& object,
                        detail::Bundle& bundle) {
    detail::put_member(name, context.*Whole, object, bundle);
  }

  void add_member(Member member, Role from) {
    for (Side& side : sides_) {
      if (side.role == from) return side.members.push_back(std::move(member));
    }
    Side& side = sides_.emplace_back(Side{.role = from});
    side.members.push_back(std::move(member));
    if (detail::hears_of(worker_, from)) {
      side.inbox.listen(loop_->events(), event_of(from), false);
      side.inbox.expect_from(worker_, from);
    }
  }

  void merge(Side& side, C& context, const detail::Bundle& bundle) const {
    const std::string event = "event '" + event_of(side.role) + "'";
    const nlohmann::json object = detail::json_of({.json = bundle.json});
    if (!object.is_object()) {
      throw std::runtime_error(event + ": " + detail::misfit_text(object, "no object of members"));
    }
    for (const Member& each : side.members) {
      const auto value = object.find(std::string(each.name));
      if (value == object.end()) continue;
      try {
        each.merge(context, *value, bundle);
      } catch (const std::exception& error) {
        throw std::runtime_error(event + ", member '" + std::string(each.name) +
                                 "': " + error.what());
      }
    }
  }

  Worker worker_;
  Pipeline<C>* loop_;
  std::string name_;
  std::vector<Side> sides_;
};

struct SendModelOptions {
  Role from = role::kLearner;
  /// Every so many iterations, the first time in the first.
  std::uint64_t period = 1;
};

/// Sends a model on the way back, retained: who comes later has the last one.
template <ContextType C>
class SendModel {
 public:
  using Weights = std::function<Buffer(C&)>;
  SendModel(Worker worker, PipelineBase& loop, std::string name, Weights weights,
            SendModelOptions options = {})
      : worker_(std::move(worker)),
        loop_(&loop),
        name_("model." + std::move(name)),
        weights_(std::move(weights)),
        options_(options) {}

  void forward(C&) {}
  void backward(C& context) {
    if (!detail::sends_as(worker_, options_.from)) return;
    if (options_.period > 1 && context.total_step % options_.period != 0) return;
    const nlohmann::json about{{"version", ++version_}, {"made_ms", detail::wall_clock_ms()}};
    detail::emit_bundle(loop_->events(), name_,
                        {.json = detail::json_text_of(about), .buffers = {weights_(context)}},
                        true);
  }

 private:
  Worker worker_;
  PipelineBase* loop_;
  std::string name_;
  Weights weights_;
  SendModelOptions options_;
  std::uint64_t version_ = 0;
};

struct UseModelOptions {
  Role from = role::kLearner;
  /// For so many iterations it goes on with the same model; 0: it waits for a new one in each but
  /// the first, and is in step with who sends. Where a sender has begun again, the next iteration
  /// is as the first: the sender has no model yet, and may wait for what this worker sends.
  std::uint64_t max_lag = 0;
  /// One that was made longer ago is not used, if it is not 0, and does not stay in use: the step
  /// waits for another. Clocks of several machines are compared.
  std::chrono::milliseconds max_age{0};
  /// Before a model that it waits for fails the step.
  Timeout within = std::chrono::seconds(60);
};

/// Uses the model that came last on the way forward. Versions are not compared, as each sender
/// counts its own and starts at 1 when it begins again: let one worker send a model.
template <ContextType C>
class UseModel {
 public:
  using Use = std::function<void(C&, const Buffer&)>;
  UseModel(Worker worker, PipelineBase& loop, std::string name, Use use,
           UseModelOptions options = {})
      : worker_(std::move(worker)),
        loop_(&loop),
        name_("model." + std::move(name)),
        use_(std::move(use)),
        options_(options) {
    if (!detail::hears_of(worker_, options_.from)) return;
    inbox_.listen(loop.events(), name_, true);
    inbox_.expect_from(worker_, options_.from);
  }

  void forward(C& context) {
    if (!detail::hears_of(worker_, options_.from)) return;
    if (goes_on(context)) return;
    if (++lag_ <= options_.max_lag && (version_ == 0 || !is_too_old(made_ms_))) return;
    const auto since = std::chrono::steady_clock::now();
    while (!goes_on(context)) {
      const Result<bool> there = inbox_.wait(options_.within, loop_->ending(), since);
      // Something has come, or a sender has begun again.
      if (there && (*there || !loop_->ending().stop_requested())) continue;
      if (loop_->ending().stop_requested()) return;
      // Retained events of a worker that has ended may be in flight to a worker that has begun
      // again: they come before the answer.
      const auto left = since + options_.within.time() - std::chrono::steady_clock::now();
      if (left.count() > 0 && worker_.ready(1, left, loop_->ending()) && goes_on(context)) return;
      if (loop_->ending().stop_requested()) return;
      throw std::runtime_error("model '" + name_.substr(6) + "': " + there.error().message);
    }
  }
  void backward(C&) {}

  /// The version of the model in use; 0: there is none yet.
  [[nodiscard]] std::uint64_t version() const { return version_; }

 private:
  /// With a new model; or without one, in the first iteration and where a sender has begun again.
  bool goes_on(C& context) {
    bool goes_on = std::exchange(first_, false);
    if (inbox_.take_new_sender()) {
      lag_ = 0;
      goes_on = true;
    }
    for (const detail::Bundle& bundle : inbox_.take()) {
      const nlohmann::json about = detail::json_of({.json = bundle.json});
      const auto made_ms = number_of<double>(about, "made_ms");
      if (is_too_old(made_ms)) continue;
      const auto version = number_of<std::uint64_t>(about, "version");
      if (bundle.buffers.size() != 1) {
        throw std::runtime_error("event '" + name_ + "': a model is one buffer, and " +
                                 std::to_string(bundle.buffers.size()) + " came");
      }
      use_(context, bundle.buffers.front());
      version_ = version;
      made_ms_ = made_ms;
      lag_ = 0;
      goes_on = true;
    }
    return goes_on;
  }

  [[nodiscard]] bool is_too_old(double made_ms) const {
    const auto max_age_ms = static_cast<double>(options_.max_age.count());
    return max_age_ms > 0 && static_cast<double>(detail::wall_clock_ms()) - made_ms > max_age_ms;
  }

  /// Throws where what came is no model.
  template <class Number>
  [[nodiscard]] Number number_of(const nlohmann::json& about, const std::string& field) const {
    const auto found = about.find(field);
    const auto number = detail::number_that_fits<Number>(found == about.end() ? nullptr : *found);
    if (!number) {
      throw std::runtime_error("event '" + name_ + "', '" + field +
                               "' of a model: " + number.error().message);
    }
    return *number;
  }

  Worker worker_;
  PipelineBase* loop_;
  std::string name_;
  Use use_;
  UseModelOptions options_;
  detail::Inbox inbox_;
  std::uint64_t version_ = 0;  ///< Of the model in use; 0: none.
  double made_ms_ = 0;         ///< When that was made.
  std::uint64_t lag_ = 0;
  bool first_ = true;
};

}  // namespace trainyard

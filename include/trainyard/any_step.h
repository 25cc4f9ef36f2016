// Steps put together: one after another, side by side, with a name; and one of any kind as a value.
//
//   loop.use("evaluate", trainyard::parallel(test, trainyard::serial(compress, upload)));
//   trainyard::AnyStep<Train> saver = is_learner ? Saver{dir} : trainyard::no_step;
//
// A part is found as "evaluate/2", or "evaluate/upload" when it is named("upload", upload). Groups
// nest. A part is a step like any other, for wrappers, locks and errors.
//
// A value that moves; of the thread that makes the pipeline.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainyard/detail/step_node.h"
#include "trainyard/step.h"
#include "trainyard/step_options.h"

namespace trainyard {

/// Options of the other parallel(), which starts processes (trainyard/parallel.h).
struct ParallelOptions;

namespace detail {

enum class StepKind : std::uint8_t { None, Single, Serial, Parallel };

/// A step or a group of steps, before it is placed in a pipeline.
struct StepTree {
  StepKind kind = StepKind::None;
  std::string name = {};
  StepRules rules = {};
  std::unique_ptr<StepNode> node = {};  ///< Of a single one.
  std::vector<StepTree> parts = {};     ///< Of a group.
};

inline StepTree single(std::unique_ptr<StepNode> node) {
  return {.kind = StepKind::Single, .node = std::move(node)};
}

template <class... Parts>
struct StepGroup {
  StepKind kind;
  std::tuple<Parts...> parts;
};

/// A named step of pipelines with the context C, or of any pipeline if C is void.
template <class C, class F>
struct NamedStep {
  std::string name;
  F step;
  StepRules rules;
};

template <class T>
inline constexpr bool kIsGroup = false;
template <class... Parts>
inline constexpr bool kIsGroup<StepGroup<Parts...>> = true;
template <class T>
inline constexpr bool kIsNamed = false;
template <class C, class F>
inline constexpr bool kIsNamed<NamedStep<C, F>> = true;
template <class T, class C>
inline constexpr bool kIsNamedOfAnother = false;
template <class C, class F, class Another>
inline constexpr bool kIsNamedOfAnother<NamedStep<Another, F>, C> =
    !std::is_void_v<Another> && !std::derived_from<C, Another>;

}  // namespace detail

struct NoStep {};
/// For a function that makes steps, and has nothing to do here: using it does nothing.
inline constexpr NoStep no_step;

/// A step of any kind, or none.
template <class C>
class AnyStep {
 public:
  AnyStep() = default;
  AnyStep(NoStep) {}  // NOLINT(google-explicit-constructor): what one returns is a step
  template <class F>
    requires(!std::same_as<std::decay_t<F>, AnyStep>)
  AnyStep(F&& step);  // NOLINT(google-explicit-constructor): what one returns is a step

  [[nodiscard]] bool empty() const { return tree_.kind == detail::StepKind::None; }
  detail::StepTree take_tree() && { return std::move(tree_); }

 private:
  detail::StepTree tree_;
};

namespace detail {

template <class T, class C>
inline constexpr bool kIsUsable =
    kIsGroup<T> || kIsNamed<T> || StepOf<T, C> || std::same_as<T, AnyStep<C>> ||
    std::same_as<T, NoStep> || std::same_as<T, std::vector<AnyStep<C>>>;

/// Owns a step that is an rvalue. Refers to one that is an lvalue, which must outlive the tree.
template <class C, class T>
StepTree make_tree(T&& step);

template <class C, class T>
void add_part(StepTree& group, T&& part) {
  const auto add = [&group](StepTree tree) {
    if (tree.kind != StepKind::None) group.parts.push_back(std::move(tree));
  };
  if constexpr (std::same_as<T, std::vector<AnyStep<C>>>) {
    for (AnyStep<C>& each : part) add(std::move(each).take_tree());
  } else {
    add(make_tree<C>(std::forward<T>(part)));
  }
}

template <class C, class T>
StepTree make_tree(T&& step) {
  using Kind = std::remove_cvref_t<T>;
  static_assert(kIsUsable<Kind, C>,
                "a step is a function of a reference to the context (Train&) that returns nothing, "
                "Step, or its backward half; or an object with forward(Train&) and "
                "backward(Train&)");
  static_assert(!kIsNamedOfAnother<Kind, C>,
                "the options of the named step are those of another context");
  if constexpr (!kIsUsable<Kind, C> || std::same_as<Kind, NoStep>) {
    return {};  // Of what cannot be used one error is enough.
  } else if constexpr (std::same_as<Kind, AnyStep<C>>) {
    static_assert(!std::is_reference_v<T>, "a nested step is given as what it is, not as AnyStep");
    return std::forward<T>(step).take_tree();
  } else if constexpr (kIsNamed<Kind>) {
    std::string name = step.name;
    StepRules rules = step.rules;
    StepTree tree = make_tree<C>(std::forward<T>(step).step);
    tree.name = std::move(name);
    tree.rules = std::move(rules);
    return tree;
  } else if constexpr (kIsGroup<Kind>) {
    StepTree tree{.kind = step.kind};
    std::apply([&tree]<class... Parts>(
                   Parts&&... parts) { (add_part<C>(tree, std::forward<Parts>(parts)), ...); },
               std::forward<T>(step).parts);
    if (tree.parts.empty()) tree.kind = StepKind::None;
    return tree;
  } else if constexpr (std::same_as<std::unwrap_reference_t<Kind>, Kind>) {
    return single(make_node<C>(std::forward<T>(step)));
  } else {
    return single(make_node<C>(step.get()));
  }
}

}  // namespace detail

template <class C>
template <class F>
  requires(!std::same_as<std::decay_t<F>, AnyStep<C>>)
AnyStep<C>::AnyStep(F&& step)
    : tree_(detail::make_tree<C>(std::decay_t<F>(std::forward<F>(step)))) {}

/// One step of several, one after another, also where the pipeline is async. A part may be a
/// std::vector<AnyStep<C>>, too.
template <class... Parts>
auto serial(Parts... parts) {
  return detail::StepGroup<Parts...>{detail::StepKind::Serial, {std::move(parts)...}};
}

/// One step of several whose forward halves run at the same time, on the workers of the pipeline
/// and on the thread that calls it; it ends with the last of them. All errors are reported. The
/// backward halves run one after another, in reverse order, as everywhere.
template <class... Parts>
  requires(!std::same_as<Parts, ParallelOptions> && ...)
auto parallel(Parts... parts) {
  return detail::StepGroup<Parts...>{detail::StepKind::Parallel, {std::move(parts)...}};
}

/// A part with a name: named("upload", upload).
template <class F>
auto named(std::string name, F step) {
  return detail::NamedStep<void, F>{std::move(name), std::move(step), {}};
}
/// And with options, which say of which context: named<Train>("upload", upload, {.lock = &mine}).
template <class C, class F>
auto named(std::string name, F step, StepOptions<C> options) {
  return detail::NamedStep<C, F>{std::move(name), std::move(step),
                                 detail::rules_of(std::move(options))};
}

}  // namespace trainyard

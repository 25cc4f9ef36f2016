// What the steps of a pipeline share in one iteration: a struct of yours.
//
//   struct Train : trainyard::Context {
//     std::int64_t env_step = 0;               // survives the iteration
//     std::vector<Trajectory> trajectories;    // fresh in every iteration
//     static constexpr auto kept = trainyard::keep<&Train::env_step>;
//   };
//
// Between two iterations the pipeline makes a new one, default-constructed, and moves the members
// named in `kept` into it (DI-engine `Context`, whose names are strings that nothing checks). A
// context that builds on another names what it adds: `kept = Base::kept + keep<&Mine::score>`. The
// struct stands at namespace scope, because a local one cannot have the static member.
//
// A value. It belongs to its pipeline: a step may use it while it runs, and no longer.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace trainyard {

class Context;

namespace detail {

/// "env_step" for &Train::env_step, as the compiler spells it.
template <auto Member>
consteval std::string_view member_name() {
  std::string_view text = __PRETTY_FUNCTION__;
  text = text.substr(0, text.find_first_of(";]", text.find('&')));
  return text.substr(text.rfind(':') + 1);
}

template <class Class, class Member>
Class class_of(Member Class::*);

/// A member by itself, so that two of them can be compared whatever their types.
template <auto Member>
struct OneMember {};

using Mover = void (*)(Context& from, Context& to);
/// Nothing for a member of a class that is no context.
template <auto Member>
constexpr Mover mover_of();

}  // namespace detail

/// A list of members, known to the compiler. Made by keep<...>.
template <auto... Members>
struct Kept {
  template <auto Member>
  static constexpr int kCount =
      (0 + ... + int{std::same_as<detail::OneMember<Member>, detail::OneMember<Members>>});
  static_assert(((kCount<Members> == 1) && ...), "a member is kept twice");

  static constexpr std::array<std::string_view, sizeof...(Members)> kNames{
      detail::member_name<Members>()...};

  /// Calls `each(name, member of the context)` in the order of the list.
  template <class C, class Each>
  static void for_each([[maybe_unused]] C& context, [[maybe_unused]] Each&& each) {
    (each(detail::member_name<Members>(), context.*Members), ...);
  }

  template <class C>
  static void move(C& from, C& to) {
    ((to.*Members = std::move(from.*Members)), ...);
  }

  /// One of the members is what this moves.
  static bool moves([[maybe_unused]] detail::Mover mover) {
    return ((mover == detail::mover_of<Members>()) || ...);
  }
};

/// The members that survive an iteration; keep<> when none does.
template <auto... Members>
  requires(std::is_member_object_pointer_v<decltype(Members)> && ...)
inline constexpr Kept<Members...> keep{};

template <auto... First, auto... Second>
constexpr Kept<First..., Second...> operator+(Kept<First...>, Kept<Second...>) {
  return {};
}

/// The base of every context.
class Context {
 public:
  /// How many iterations were before this one, in all runs.
  std::uint64_t total_step = 0;
  /// This iteration is the final one of the run: always true in the last of `max_steps`; and from
  /// finish() or a stop on, for the backward halves. Set by the pipeline.
  bool last = false;

  /// Keeps a member for the next renewal, and no longer: context.keep_once<&Train::trajectories>().
  /// It changes the context: where steps run side by side, in one that says nothing of what it
  /// touches.
  template <auto Member>
    requires std::is_member_object_pointer_v<decltype(Member)>
  void keep_once() {
    constexpr detail::Mover kMover = detail::mover_of<Member>();
    static_assert(kMover != nullptr, "what is kept once is a member of the context");
    if (std::ranges::find(once_, kMover) == once_.end()) once_.push_back(kMover);
  }

 private:
  template <class C>
  friend void renew(C& context);

  std::vector<detail::Mover> once_;
};

namespace detail {

template <auto Member>
void move_member(Context& from, Context& to) {
  using Class = decltype(class_of(Member));
  static_cast<Class&>(to).*Member = std::move(static_cast<Class&>(from).*Member);
}

template <auto Member>
constexpr Mover mover_of() {
  if constexpr (std::derived_from<decltype(class_of(Member)), Context>) {
    return &move_member<Member>;
  } else {
    return nullptr;
  }
}

}  // namespace detail

template <class T>
inline constexpr bool kIsKept = false;
template <auto... Members>
inline constexpr bool kIsKept<Kept<Members...>> = true;

/// What a pipeline can be made of.
template <class C>
concept ContextType = std::derived_from<C, Context> && std::default_initializable<C> &&
                      std::movable<C> && kIsKept<std::remove_cvref_t<decltype(C::kept)>>;

/// Makes it the context of the next iteration: new, but for what is kept, and one step on. When the
/// constructor throws, the old one stays as it is.
template <class C>
void renew(C& context) {
  static_assert(ContextType<C>);
  C next{};
  C::kept.move(context, next);
  for (const detail::Mover mover : context.once_) {
    if (!C::kept.moves(mover)) mover(context, next);
  }
  next.total_step = context.total_step + 1;
  context = std::move(next);
}

}  // namespace trainyard

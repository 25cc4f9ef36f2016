// The state that the steps of a pipeline share in one iteration: a struct of yours.
//
//   struct Train : trainyard::Context {
//     std::int64_t env_step = 0;               // survives the iteration
//     std::vector<Trajectory> trajectories;    // fresh in every iteration
//     static constexpr auto kept = trainyard::keep<&Train::env_step>;
//   };
//
// Between two iterations the pipeline makes a new one, default-constructed, and moves the members
// named in `kept` into it (DI-engine `Context`, whose names are strings that nothing checks). A
// context that builds on another names what it adds: `kept = Base::kept + keep<&Mine::score>`; one
// that forgets what its base keeps is an error where it is an aggregate and the base its first (the
// compiler tells of no other bases). The struct stands at namespace scope, because a local one
// cannot have the static member.
//
// It is moved and never copied, so that a step that takes it by value, and would work on a copy of
// it, does not compile. It belongs to its pipeline: a step may use it while it runs, and no longer.
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
template <class Class, class Member>
Member type_of(Member Class::*);
/// The type of a member.
template <auto Member>
using MemberOf = decltype(type_of(Member));

/// A member by itself, so that two of them can be compared whatever their types.
template <auto Member>
struct OneMember {};

/// Where it lies says which member is meant, whatever its type.
template <auto Member>
inline constexpr char kMark = 0;

/// A member that survives one renewal.
struct KeptOnce {
  const void* mark;  ///< &kMark<Member>
  void (*move)(Context& from, Context& to);
};

}  // namespace detail

/// A list of members, known to the compiler. Made by keep<...>.
template <auto... Members>
struct Kept {
  template <auto Member>
  static constexpr int kCount =
      (0 + ... + int{std::same_as<detail::OneMember<Member>, detail::OneMember<Members>>});
  static_assert(((kCount<Members> == 1) && ...), "a member is kept twice");
  template <auto Member>
  static constexpr bool kHas = kCount<Member> > 0;

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

  /// One of the members has this mark.
  static bool has([[maybe_unused]] const void* mark) {
    return ((mark == &detail::kMark<Members>) || ...);
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
  Context() = default;
  Context(Context&&) = default;
  Context& operator=(Context&&) = default;

  /// How many iterations were before this one, in all runs.
  std::uint64_t total_step = 0;
  /// This iteration is the final one of the run: always true in the last of `max_steps`; and from
  /// finish() or a stop on, for the backward halves. Set by the pipeline.
  bool last = false;

 private:
  template <class C>
  friend void renew(C& context);
  template <auto Member, class C>
  friend void keep_once(C& context);

  std::vector<detail::KeptOnce> once_;
};

/// Keeps a member for the next renewal, and no longer: keep_once<&Train::trajectories>(context).
/// It changes the context: where steps run side by side, in one that says nothing of what it
/// touches.
template <auto Member, class C>
void keep_once(C& context) {
  static_assert(std::is_member_object_pointer_v<decltype(Member)> &&
                    std::derived_from<C, decltype(detail::class_of(Member))>,
                "what is kept once is a member of this context");
  const void* const mark = &detail::kMark<Member>;
  const auto known = std::ranges::find(context.once_, mark, &detail::KeptOnce::mark);
  if (known != context.once_.end()) return;
  context.once_.push_back({.mark = mark, .move = [](Context& from, Context& to) {
                             static_cast<C&>(to).*Member = std::move(static_cast<C&>(from).*Member);
                           }});
}

template <class T>
inline constexpr bool kIsKept = false;
template <auto... Members>
inline constexpr bool kIsKept<Kept<Members...>> = true;

namespace detail {

/// All that the first keeps, the second keeps, too.
template <auto... Some, auto... All>
consteval bool is_covered(Kept<Some...>, Kept<All...>) {
  return (Kept<All...>::template kHas<Some> && ...);
}

/// Stands where an aggregate that builds on others has its first base: it is any context whose
/// `kept` has members that C's lacks, and nothing else.
template <class C>
struct BaseThatIsLost {
  template <class Base>
    requires(std::derived_from<C, Base> && !std::same_as<C, Base> &&
             kIsKept<std::remove_cvref_t<decltype(Base::kept)>> && !is_covered(Base::kept, C::kept))
  operator Base() const;  // NOLINT(google-explicit-constructor): asked for by an initialisation
};
template <class C>
concept LosesKept = std::is_aggregate_v<C> && requires { C{BaseThatIsLost<C>{}}; };

}  // namespace detail

/// A context type that a pipeline accepts.
template <class C>
concept ContextType = std::derived_from<C, Context> && std::default_initializable<C> &&
                      std::movable<C> && kIsKept<std::remove_cvref_t<decltype(C::kept)>>;

/// Makes it the context of the next iteration: new, but for what is kept, and one step on. When the
/// constructor throws, the old one stays as it is.
template <class C>
void renew(C& context) {
  static_assert(ContextType<C>);
  static_assert(!detail::LosesKept<C>,
                "the context keeps less than what it builds on: kept = Base::kept + keep<...>");
  C next{};
  C::kept.move(context, next);
  for (const detail::KeptOnce& once : context.once_) {
    if (!C::kept.has(once.mark)) once.move(context, next);
  }
  next.total_step = context.total_step + 1;
  context = std::move(next);
}

}  // namespace trainyard

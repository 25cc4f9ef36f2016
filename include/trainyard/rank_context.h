// The context of a component besides its task: properties with typed keys (NVFlare `FLContext`).
//
//   inline constexpr ContextKey<double> rate{.name = "rate", .sticky = true};
//   context.set(rate, 0.1).value();
//   double now = context.get(rate).value_or(0.01);
//
// The flags are part of the key, so a property cannot have two sets of them. A *sticky* one is seen
// at once by all contexts made of each other (`sibling()`), the others by this one alone. A
// *transferable* one travels between a RankExecutor and its ranks: what a component in rank 0
// changes comes back; what one changes in another rank does not. A *private* one does not leave the
// site: it travels to ranks, and is not in `public_values()`. Values of other types than those that
// JSON has are live: they stay where they are, and nothing that comes can replace them.
//
// Not the context of a pipeline (trainyard/context.h). Any thread.
#pragma once

#include <any>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainyard/buffer.h"
#include "trainyard/json.h"  // IWYU pragma: export
#include "trainyard/result.h"
#include "trainyard/return_code.h"

namespace trainyard {

template <class T>
concept Travels = std::same_as<T, bool> || std::same_as<T, std::int64_t> ||
                  std::same_as<T, double> || std::same_as<T, std::string> || std::same_as<T, Json>;

/// A property: its name, its type, and what becomes of it. Names that begin with "__" are reserved.
template <class T>
struct ContextKey {
  std::string_view name;
  bool is_private = true;
  bool sticky = false;
  bool transferable = Travels<T>;  ///< Must be false for what does not travel.
};

/// Who hears what is fired in a rank, beside the components there and the parent.
enum class Audience : std::uint8_t { Parent, Group };

/// How an event was heard: Ok, and what those who heard it threw; or why it did not get there.
struct [[nodiscard]] EventOutcome {
  ReturnCode code = ReturnCode::Ok;
  std::string message = {};
  std::vector<std::string> errors = {};
};

class RankContext;

namespace detail {

struct KeyTraits {
  bool is_private = true;
  bool sticky = false;
  bool transferable = true;

  friend bool operator==(const KeyTraits&, const KeyTraits&) = default;
};

/// Where a context is: in a rank, or beside a RankExecutor.
class RankLink {
 public:
  RankLink() = default;
  RankLink(RankLink&&) = delete;
  RankLink& operator=(RankLink&&) = delete;
  virtual ~RankLink() = default;
  [[nodiscard]] virtual Result<Buffer> alloc(DType type, Dimensions shape) = 0;
  virtual EventOutcome fire(RankContext& context, std::string_view event, const Json& data,
                            Audience audience) = 0;
};

/// The position of this process among the ranks.
struct RankPosition {
  std::optional<int> rank;
  int local_rank = 0;
  int ranks = 1;
  /// Where the event that is being handled was fired, when that was in a rank.
  std::optional<int> from_rank;
  int depth = 0;  ///< Of that event: how many led to it, one in reaction to the other.
  std::shared_ptr<RankLink> link;
};

}  // namespace detail

class RankContext {
 public:
  /// With sticky properties of its own.
  RankContext();
  RankContext(RankContext&&) noexcept;
  RankContext& operator=(RankContext&&) noexcept;
  ~RankContext();

  /// Another one with the same sticky properties, and no others.
  [[nodiscard]] RankContext sibling() const;

  /// An error: the name is reserved, or is that of a key with other flags or another type.
  template <class T>
  [[nodiscard]] Result<void> set(const ContextKey<T>& key, const std::type_identity_t<T>& value) {
    if constexpr (Travels<T>) {
      return set_value(key.name, traits_of(key), value);
    } else {
      return set_live(key.name, traits_of(key), std::any(value));
    }
  }

  /// Nothing when it was not set.
  template <class T>
  [[nodiscard]] std::optional<T> get(const ContextKey<T>& key) const {
    if constexpr (Travels<T>) {
      T value{};
      if (get_value(key.name, value)) return value;
    } else {
      const std::any live = get_live(key.name);
      if (const T* const value = std::any_cast<T>(&live)) return *value;
    }
    return std::nullopt;
  }

  /// Whether it was there.
  template <class T>
  bool remove(const ContextKey<T>& key) {
    return remove(key.name, traits_of(key).sticky);
  }

  /// An object of what is not private: what another site may see.
  [[nodiscard]] Json public_values() const;

  /// Nothing outside of a rank.
  [[nodiscard]] std::optional<int> rank() const;
  /// Its number on its machine, as its launcher says.
  [[nodiscard]] int local_rank() const;
  /// How many there are.
  [[nodiscard]] int ranks() const;
  /// While an event is handled: the rank that fired it; nothing when that was the parent.
  [[nodiscard]] std::optional<int> from_rank() const;

  /// Memory that goes to the other side without a copy; it is filled, then sent once.
  [[nodiscard]] Result<Buffer> alloc(DType type, Dimensions shape);

  /// In a rank: the components there that listen hear it, on the thread that calls this, then the
  /// parent, and perhaps the other ranks. Beside a RankExecutor: the ranks do. A context of neither
  /// tells nobody. Returns when all of them have heard it, or after the time limit `event`.
  EventOutcome fire(std::string_view event, const Json& data, Audience audience = Audience::Parent);
  EventOutcome fire(std::string_view event);

 private:
  friend class ContextAccess;
  struct State;
  explicit RankContext(std::unique_ptr<State> state);

  template <class T>
  static detail::KeyTraits traits_of(const ContextKey<T>& key) {
    return {.is_private = key.is_private,
            .sticky = key.sticky,
            .transferable = key.transferable && Travels<T>};
  }
  [[nodiscard]] Result<void> set_value(std::string_view name, detail::KeyTraits traits,
                                       const Json& value);
  [[nodiscard]] Result<void> set_value(std::string_view name, detail::KeyTraits traits, bool value);
  [[nodiscard]] Result<void> set_value(std::string_view name, detail::KeyTraits traits,
                                       std::int64_t value);
  [[nodiscard]] Result<void> set_value(std::string_view name, detail::KeyTraits traits,
                                       double value);
  [[nodiscard]] Result<void> set_value(std::string_view name, detail::KeyTraits traits,
                                       const std::string& value);
  [[nodiscard]] Result<void> set_live(std::string_view name, detail::KeyTraits traits,
                                      std::any value);
  [[nodiscard]] bool get_value(std::string_view name, Json& value) const;
  [[nodiscard]] bool get_value(std::string_view name, bool& value) const;
  [[nodiscard]] bool get_value(std::string_view name, std::int64_t& value) const;
  [[nodiscard]] bool get_value(std::string_view name, double& value) const;
  [[nodiscard]] bool get_value(std::string_view name, std::string& value) const;
  [[nodiscard]] std::any get_live(std::string_view name) const;
  bool remove(std::string_view name, bool sticky);

  std::unique_ptr<State> state_;
};

}  // namespace trainyard

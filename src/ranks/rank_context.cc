#include "trainyard/rank_context.h"

#include <atomic>
#include <cstddef>
#include <expected>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/result.h"
#include "ranks/context_access.h"
#include "wire/field_reader.h"
#include "wire/rank.h"

namespace trainyard {
namespace {

constexpr std::string_view kReserved = "__";
/// All properties travel in the fields of one frame.
constexpr std::size_t kValueBytesMax = std::size_t{256} << 10;
constexpr int kPrivateFlag = 1;
constexpr int kStickyFlag = 2;

std::uint64_t next_version() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

struct Property {
  Json value;     ///< For a value that may travel.
  std::any live;  ///< For a value that is not JSON.
  detail::KeyTraits traits;
  std::uint64_t version = 0;
};

using Properties = std::map<std::string, Property, std::less<>>;

/// The state that all siblings share. The flags of a name stay known when its property is gone.
struct Shared {
  std::mutex mutex;
  Properties sticky;
  std::map<std::string, detail::KeyTraits, std::less<>> known;
};

std::string flags_text(const detail::KeyTraits& traits) {
  return fmt::format("{}, {}sticky, {}transferable", traits.is_private ? "private" : "public",
                     traits.sticky ? "" : "not ", traits.transferable ? "" : "not ");
}

}  // namespace

struct RankContext::State {
  explicit State(std::shared_ptr<Shared> with) : shared(std::move(with)) {}

  Result<void> put(std::string_view name, Property property, bool by_us);
  bool remove(std::string_view name, bool sticky, bool by_us);
  /// Calls `see` with the property of that name, if there is one.
  bool look(std::string_view name, const std::function<void(const Property&)>& see) const;
  [[nodiscard]] Properties all() const;

  std::shared_ptr<Shared> shared;
  Properties own;  ///< Guarded, as all here, by the mutex that siblings share.
  std::set<std::string, std::less<>> changed;
  detail::RankPosition position;
};

Result<void> RankContext::State::put(std::string_view name, Property property, bool by_us) {
  if (name.empty() || name.starts_with(kReserved)) {
    return std::unexpected(Error{fmt::format("the name '{}' is reserved", name)});
  }
  const std::scoped_lock lock(shared->mutex);
  const auto [known, fresh] = shared->known.emplace(name, property.traits);
  if (!fresh && known->second != property.traits) {
    return std::unexpected(
        Error{fmt::format("the property '{}' is {}, and cannot become {}", name,
                          flags_text(known->second), flags_text(property.traits))});
  }
  property.version = next_version();
  if (by_us && property.traits.transferable) changed.emplace(name);
  Properties& to = property.traits.sticky ? shared->sticky : own;
  to.insert_or_assign(std::string(name), std::move(property));
  return {};
}

bool RankContext::State::remove(std::string_view name, bool sticky, bool by_us) {
  const std::scoped_lock lock(shared->mutex);
  Properties& from = sticky ? shared->sticky : own;
  const auto found = from.find(name);
  if (found == from.end()) return false;
  if (by_us && found->second.traits.transferable) changed.emplace(name);
  from.erase(found);
  return true;
}

bool RankContext::State::look(std::string_view name,
                              const std::function<void(const Property&)>& see) const {
  const std::scoped_lock lock(shared->mutex);
  for (const Properties* const in : {&own, static_cast<const Properties*>(&shared->sticky)}) {
    const auto found = in->find(name);
    if (found == in->end()) continue;
    see(found->second);
    return true;
  }
  return false;
}

Properties RankContext::State::all() const {
  const std::scoped_lock lock(shared->mutex);
  Properties seen = own;
  seen.insert(shared->sticky.begin(), shared->sticky.end());
  return seen;
}

RankContext::RankContext() : RankContext(std::make_unique<State>(std::make_shared<Shared>())) {}
RankContext::RankContext(std::unique_ptr<State> state) : state_(std::move(state)) {}
RankContext::RankContext(RankContext&&) noexcept = default;
RankContext& RankContext::operator=(RankContext&&) noexcept = default;
RankContext::~RankContext() = default;

RankContext RankContext::sibling() const {
  auto state = std::make_unique<State>(state_->shared);
  state->position = state_->position;
  return RankContext(std::move(state));
}

Result<void> RankContext::set_value(std::string_view name, detail::KeyTraits traits,
                                    const Json& value) {
  if (!wire::nests_within(value, wire::kValueLevelsMax)) {
    return std::unexpected(Error{
        fmt::format("the value of '{}' is nested deeper than {}", name, wire::kValueLevelsMax)});
  }
  // Only of what may be large: this would be a copy of everything else.
  const bool large = value.is_string() || value.is_structured();
  if (traits.transferable && large && wire::fields_text(value).size() > kValueBytesMax) {
    return std::unexpected(Error{fmt::format(
        "the value of '{}' has more than {} bytes as JSON: what is large goes as a buffer", name,
        kValueBytesMax)});
  }
  return state_->put(name, {.value = value, .traits = traits}, true);
}
Result<void> RankContext::set_value(std::string_view name, detail::KeyTraits traits, bool value) {
  return set_value(name, traits, Json(value));
}
Result<void> RankContext::set_value(std::string_view name, detail::KeyTraits traits,
                                    std::int64_t value) {
  return set_value(name, traits, Json(value));
}
Result<void> RankContext::set_value(std::string_view name, detail::KeyTraits traits, double value) {
  return set_value(name, traits, Json(value));
}
Result<void> RankContext::set_value(std::string_view name, detail::KeyTraits traits,
                                    const std::string& value) {
  return set_value(name, traits, Json(value));
}
Result<void> RankContext::set_live(std::string_view name, detail::KeyTraits traits,
                                   std::any value) {
  return state_->put(name, {.live = std::move(value), .traits = traits}, true);
}

bool RankContext::get_value(std::string_view name, Json& value) const {
  return state_->look(name, [&value](const Property& it) { value = it.value; });
}
bool RankContext::get_value(std::string_view name, bool& value) const {
  Json read;
  if (!get_value(name, read) || !read.is_boolean()) return false;
  value = read.get<bool>();
  return true;
}
bool RankContext::get_value(std::string_view name, std::int64_t& value) const {
  Json read;
  if (!get_value(name, read) || !read.is_number_integer()) return false;
  value = read.get<std::int64_t>();
  return true;
}
bool RankContext::get_value(std::string_view name, double& value) const {
  Json read;
  if (!get_value(name, read) || !read.is_number()) return false;
  value = read.get<double>();
  return true;
}
bool RankContext::get_value(std::string_view name, std::string& value) const {
  Json read;
  if (!get_value(name, read) || !read.is_string()) return false;
  value = read.get<std::string>();
  return true;
}
std::any RankContext::get_live(std::string_view name) const {
  std::any value;
  state_->look(name, [&value](const Property& it) { value = it.live; });
  return value;
}

bool RankContext::remove(std::string_view name, bool sticky) {
  return state_->remove(name, sticky, true);
}

Json RankContext::public_values() const {
  Json values = Json::object();
  for (const auto& [name, property] : state_->all()) {
    if (!property.traits.is_private && !property.live.has_value()) values[name] = property.value;
  }
  return values;
}

std::optional<int> RankContext::rank() const { return state_->position.rank; }
int RankContext::local_rank() const { return state_->position.local_rank; }
int RankContext::ranks() const { return state_->position.ranks; }
std::optional<int> RankContext::from_rank() const { return state_->position.from_rank; }

Result<Buffer> RankContext::alloc(DType type, Dimensions shape) {
  if (!count_of(shape)) {
    return std::unexpected(Error{"a shape of more numbers than memory can hold"});
  }
  if (state_->position.link == nullptr) return Buffer(type, std::move(shape));
  return state_->position.link->alloc(type, std::move(shape));
}

EventOutcome RankContext::fire(std::string_view event, const Json& data, Audience audience) {
  if (state_->position.link == nullptr) return {};
  return state_->position.link->fire(*this, event, data, audience);
}
EventOutcome RankContext::fire(std::string_view event) { return fire(event, Json()); }

std::optional<EventOutcome> refused(std::string_view event, const Json& data) {
  if (wire::nests_within(data, wire::kValueLevelsMax)) return std::nullopt;
  return EventOutcome{.code = ReturnCode::BadTaskData,
                      .message = fmt::format("event '{}': its data is nested deeper than {}", event,
                                             wire::kValueLevelsMax)};
}

// --- ContextAccess ---

namespace {

/// Adds to an object of changes.
void add_to(Json& changes, const std::string& name, const Property& property) {
  const int flags =
      (property.traits.is_private ? kPrivateFlag : 0) + (property.traits.sticky ? kStickyFlag : 0);
  changes["set"][name] = Json::array({property.value, flags});
}

std::string changes_text(const Json& changes) {
  return changes.empty() ? std::string() : wire::fields_text(changes);
}

}  // namespace

std::string ContextAccess::changes(const RankContext& context, ContextMirror& mirror,
                                   ContextMirror& sticky) {
  Json changes = Json::object();
  ContextMirror now;
  ContextMirror sticky_now;
  for (const auto& [name, property] : context.state_->all()) {
    if (!property.traits.transferable) continue;
    const ContextMirror& before = property.traits.sticky ? sticky : mirror;
    (property.traits.sticky ? sticky_now : now).emplace(name, property.version);
    const auto known = before.find(name);
    if (known == before.end() || known->second != property.version) {
      add_to(changes, name, property);
    }
  }
  for (const ContextMirror* const before : {&mirror, &sticky}) {
    for (const auto& [name, version] : *before) {
      if (!now.contains(name) && !sticky_now.contains(name)) changes["remove"].push_back(name);
    }
  }
  mirror = std::move(now);
  sticky = std::move(sticky_now);
  return changes_text(changes);
}

std::string ContextAccess::own_changes(const RankContext& context) {
  Json changes = Json::object();
  const Properties all = context.state_->all();
  std::set<std::string, std::less<>> changed;
  {
    const std::scoped_lock lock(context.state_->shared->mutex);
    changed = context.state_->changed;
  }
  for (const std::string& name : changed) {
    const auto found = all.find(name);
    if (found == all.end()) {
      changes["remove"].push_back(name);
    } else {
      add_to(changes, name, found->second);
    }
  }
  return changes_text(changes);
}

std::vector<std::string> ContextAccess::merge(RankContext& context, std::string_view changes) {
  std::vector<std::string> refused;
  if (changes.empty()) return refused;
  const Json read = Json::parse(changes, nullptr, /*allow_exceptions=*/false);
  if (!read.is_object()) return {"changes of a context must be an object"};
  const Json set = read.value("set", Json::object());
  for (const auto& [name, entry] : set.items()) {
    if (!entry.is_array() || entry.size() != 2 || !entry[1].is_number_integer()) {
      refused.push_back(fmt::format("the property '{}' is not [value, flags]", name));
      continue;
    }
    const int flags = entry[1].get<int>();
    const detail::KeyTraits traits{.is_private = (flags & kPrivateFlag) != 0,
                                   .sticky = (flags & kStickyFlag) != 0,
                                   .transferable = true};
    const Result<void> put =
        context.state_->put(name, {.value = entry[0], .traits = traits}, false);
    if (!put) refused.push_back(put.error().message);
  }
  const Json removed = read.value("remove", Json::array());
  for (const Json& name : removed) {
    if (!name.is_string()) continue;
    const auto text = name.get<std::string>();
    bool travels = false;
    bool sticky = false;
    context.state_->look(text, [&](const Property& it) {
      travels = it.traits.transferable;
      sticky = it.traits.sticky;
    });
    if (travels) context.state_->remove(text, sticky, false);
  }
  return refused;
}

RankContext ContextAccess::copy(const RankContext& context) {
  RankContext made = context.sibling();
  const std::scoped_lock lock(context.state_->shared->mutex);
  made.state_->own = context.state_->own;
  return made;
}

void ContextAccess::set_position(RankContext& context, detail::RankPosition position) {
  context.state_->position = std::move(position);
}

const detail::RankPosition& ContextAccess::position(const RankContext& context) {
  return context.state_->position;
}

}  // namespace trainyard

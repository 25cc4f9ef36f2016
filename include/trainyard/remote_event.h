// An event that also goes to the other workers of a parallel run, as JSON or as a buffer:
//
//   struct BestModel { int version = 0; double score = 0; };
//   NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BestModel, version, score)
//   inline constexpr trainyard::RemoteEvent<BestModel> kBestModel{"model.best"};
//   inline constexpr trainyard::RemoteEvent<trainyard::Buffer> kWeights{"model.weights"};
//
//   bus.emit(kBestModel, {.version = 7, .score = 0.9}, trainyard::remote);
//
// It carries nothing (NoPayload), a Buffer, or anything that nlohmann::json converts both ways: so
// nothing that comes can run code, and a worker in Python hears it, too. Both ends must carry the
// same type: a listener of another one is told so, on the bus that hears (EventBus, on_error).
// Includes all of nlohmann/json.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "trainyard/buffer.h"
#include "trainyard/detail/codec.h"
#include "trainyard/event.h"

namespace trainyard {

namespace detail {

template <class P>
void encode_payload(const void* payload, RemotePayload& to) {
  if constexpr (std::is_same_v<P, Buffer>) {
    to.buffers.push_back(*static_cast<const Buffer*>(payload));
  } else if constexpr (!std::is_same_v<P, NoPayload>) {
    to.json = json_text_of(nlohmann::json(*static_cast<const P*>(payload)));
  }
}

template <class T>
inline constexpr bool kIsInteger = std::is_integral_v<T> && !std::is_same_v<T, bool>;

/// Nothing where it is no integer, or one that T cannot hold: the conversion would cut that off.
template <class T>
std::optional<T> integer_from_json(const nlohmann::json& value) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
  constexpr auto kLeast = static_cast<std::int64_t>(std::numeric_limits<T>::min());
  if (!value.is_number_integer()) return std::nullopt;
  const bool is_negative = !value.is_number_unsigned() && value.get<std::int64_t>() < 0;
  const bool fits =
      is_negative ? value.get<std::int64_t>() >= kLeast : value.get<std::uint64_t>() <= kMost;
  return fits ? std::optional(value.get<T>()) : std::nullopt;
}

/// Throws where it does not fit.
template <class P>
P payload_from_json(const nlohmann::json& value) {
  if constexpr (kIsInteger<P>) {
    const std::optional<P> number = integer_from_json<P>(value);
    if (!number) {
      throw_misfit(value, "it takes an integer of " + std::to_string(8 * sizeof(P)) + " bits");
    }
    return *number;
  } else {
    try {
      return value.get<P>();
    } catch (const nlohmann::json::exception& error) {
      throw_misfit(value, error.what());
    }
  }
}

template <class P>
void decode_payload(const RemotePayload& from, const Deliver& deliver) {
  if constexpr (std::is_same_v<P, Buffer>) {
    deliver(&the_buffer_of(from));
  } else if constexpr (std::is_same_v<P, NoPayload>) {
    const NoPayload nothing_carried;
    deliver(&nothing_carried);
  } else {
    const P payload = payload_from_json<P>(json_of(from));
    deliver(&payload);
  }
}

/// The type name on which both ends agree. Any end may read JSON, so only types without a JSON form
/// have a name of their own.
template <class P>
consteval std::string_view remote_type_name() {
  if (std::is_same_v<P, Buffer>) return "buffer";
  return "json";
}

template <class P>
inline constexpr Codec kCodec{.type = remote_type_name<P>(),
                              .payload = &kPayloadType<P>,
                              .encode = &encode_payload<P>,
                              .decode = &decode_payload<P>};

}  // namespace detail

template <class P = NoPayload>
struct RemoteEvent : Event<P> {
  static_assert(std::is_same_v<P, NoPayload> || std::is_same_v<P, Buffer> ||
                    (std::is_constructible_v<nlohmann::json, const P&> &&
                     std::is_default_constructible_v<P>),
                "what goes to other processes is a Buffer, or converts to nlohmann::json and back "
                "(NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE)");
  constexpr explicit RemoteEvent(const char* text) : Event<P>(text, &detail::kCodec<P>) {}
};

}  // namespace trainyard

// The name of an event and the type of what it carries, as one constant:
//
//   struct JobDone { int id; double loss; };
//   inline constexpr trainyard::Event<JobDone> job_done{"job.done"};
//
// It stays in its process; one that also goes to others is a RemoteEvent
// (trainyard/remote_event.h). Two constants of one name must carry the same type: telling one to
// listeners of the other is an error that the bus reports (EventBus, on_error).
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>
#include <type_traits>

namespace trainyard {

/// The payload type of an event that carries nothing.
struct NoPayload {};

namespace detail {

struct Codec;

/// The properties of a payload type that the bus needs to keep a value of it.
struct PayloadType {
  std::string_view name;
  std::size_t size;
  std::size_t alignment;
  void (*copy)(void* to, const void* from);  ///< None: it cannot be copied, so cannot wait.
  void (*destroy)(void* payload);
};

template <class P>
consteval std::string_view type_name() {
  const std::string_view text = __PRETTY_FUNCTION__;
  const auto first = text.find("P = ") + 4;
  return text.substr(first, text.find_first_of(";]", first) - first);
}

template <class P>
inline constexpr PayloadType kPayloadType{
    .name = type_name<P>(),
    .size = sizeof(P),
    .alignment = alignof(P),
    .copy =
        [] {
          void (*copy)(void*, const void*) = nullptr;
          if constexpr (std::is_copy_constructible_v<P>) {
            copy = [](void* to, const void* from) { ::new (to) P(*static_cast<const P*>(from)); };
          }
          return copy;
        }(),
    .destroy = [](void* payload) { static_cast<P*>(payload)->~P(); },
};

/// A name that was hashed once, while the program was compiled if it can be.
struct EventName {
  constexpr EventName(std::string_view name) : text(name) {  // NOLINT(google-explicit-constructor)
    for (const char letter : name) {
      hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3ULL;  // FNV-1a
    }
  }
  std::string_view text;
  std::uint64_t hash = 0xcbf29ce484222325ULL;
};

}  // namespace detail

template <class P = NoPayload>
struct Event {
  using Payload = P;
  constexpr explicit Event(const char* text) : name(text) {}
  detail::EventName name;
  const detail::Codec* codec = nullptr;  ///< Of a RemoteEvent.

 protected:
  constexpr Event(const char* text, const detail::Codec* its_codec)
      : name(text), codec(its_codec) {}
};

template <class P>
struct RemoteEvent;

}  // namespace trainyard

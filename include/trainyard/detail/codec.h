// How what an event carries is turned into what travels, and back. Not for users.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trainyard/buffer.h"
#include "trainyard/event.h"
#include "trainyard/json.h"

namespace trainyard::detail {

/// The payload of a remote event or call in transit.
struct RemotePayload {
  std::string json = {};  ///< Text; empty: null.
  std::vector<Buffer> buffers = {};
};

/// Takes what was read, while it is called.
class Deliver {
 public:
  template <class F>
  explicit Deliver(const F& function)
      : state_(&function), call_([](const void* state, const void* payload) {
          (*static_cast<const F*>(state))(payload);
        }) {}
  void operator()(const void* payload) const { call_(state_, payload); }

 private:
  const void* state_;
  void (*call_)(const void* state, const void* payload);
};

/// Both throw when that cannot be done.
struct Codec {
  std::string_view type;
  const PayloadType* payload;
  void (*encode)(const void* payload, RemotePayload& to);
  void (*decode)(const RemotePayload& from, const Deliver& deliver);
};

/// Compact. Throws for what would come as something else: NaN and infinities, what is not UTF-8,
/// and what nests too deeply to be read again.
std::string json_text_of(const nlohmann::json& value);
/// Throws when it is none, or of a looser kind.
nlohmann::json json_of(const RemotePayload& payload);
/// Throws: JSON came that does not fit what the listener takes.
[[noreturn]] void throw_misfit(const nlohmann::json& payload, std::string_view why);
/// Throws when there is not exactly one.
const Buffer& the_buffer_of(const RemotePayload& payload);

}  // namespace trainyard::detail

// The parts of an event bus for listeners of patterns, and for other processes.
#include <algorithm>
#include <iterator>
#include <utility>

#include <fnmatch.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "pipeline/bus_state.h"
#include "trainyard/remote_event.h"

namespace trainyard::detail {

const Codec kJsonCodec = kCodec<Json>;

void BusState::connect(const std::shared_ptr<BusRemote>& remote) {
  std::vector<std::string> wanted;
  {
    const std::scoped_lock lock(mutex_);
    remote_ = remote;
    const auto want = [&](const std::shared_ptr<Listener>& listener) {
      if (listener->codec != nullptr) wanted.push_back(listener->event);
    };
    for (const auto& [name, channel] : channels_) std::ranges::for_each(channel->listeners, want);
    std::ranges::for_each(patterns_, want);
  }
  for (const std::string& name : wanted) remote->want(name);
}

std::shared_ptr<BusRemote> BusState::remote() {
  const std::scoped_lock lock(mutex_);
  return remote_;
}

void BusState::emit_to_others(const Emission& emission, Reach reach) {
  const std::shared_ptr<BusRemote> others = remote();
  if (!others) return;
  try {
    others->send(emission.name, *emission.codec, emission.payload, reach.retained);
  } catch (const NotSent&) {
    if (is_in_a_listener()) throw;
    tell(emission.name.text, std::current_exception());
  } catch (...) {
    tell(emission.name.text, std::current_exception());
  }
}

void BusState::emit_to_patterns(const Emission& emission) {
  if (emission.codec == nullptr) return;
  try {
    RemotePayload payload;
    emission.codec->encode(emission.payload, payload);
    if (payload.buffers.empty()) call_patterns(emission.name.text, json_of(payload));
  } catch (...) {
    tell(emission.name.text, std::current_exception());
  }
}

std::size_t BusState::emit_retained_here(const Emission& emission) {
  const std::string name(emission.name.text);
  std::shared_ptr<const Channel> channel;
  std::vector<std::shared_ptr<Listener>> patterns;
  std::size_t receivers = 0;
  try {
    pipeline::RetainedEvent event{.type = std::string(emission.codec->type)};
    emission.codec->encode(emission.payload, event.payload);
    const RemotePayload payload = event.payload;
    {
      // Later listeners receive it as a late event, present ones receive it now.
      const std::scoped_lock lock(mutex_);
      retained_.keep(name, std::move(event));
      const auto found = channels_.find(emission.name);
      if (found != channels_.end()) channel = found->second;
      patterns = patterns_matching(name);
    }
    if (!patterns.empty() && payload.buffers.empty()) {
      call_patterns(name, json_of(payload), patterns);
    }
  } catch (...) {
    tell(name, std::current_exception());
    return 0;
  }
  if (!channel) return 0;
  for (const auto& listener : channel->listeners) {
    if (deliver(*listener, emission.type, emission.payload)) ++receivers;
  }
  return receivers;
}

void BusState::hear_late(Listener& listener) {
  listener.late.hear([&](const std::string& name, const pipeline::RetainedEvent& event) {
    try {
      if (listener.is_pattern) {
        if (!event.payload.buffers.empty()) return;
        const nlohmann::json payload = json_of(event.payload);
        const NamedJson named{.name = name, .payload = &payload};
        return call_here(listener, &named);
      }
      if (listener.codec->type != event.type) {
        return tell(name, fmt::format("was retained with {}, and a listener takes {}", event.type,
                                      listener.codec->type));
      }
      listener.codec->decode(event.payload, Deliver([&](const void* value) {
                               deliver(listener, *listener.codec->payload, value);
                             }));
    } catch (...) {
      tell(name, std::current_exception());
    }
  });
}

bool BusState::is_heard(const std::string& name) const {
  const auto hears = [](const auto& listener) { return listener->codec != nullptr; };
  const auto found = channels_.find(name);
  return (found != channels_.end() && std::ranges::any_of(found->second->listeners, hears)) ||
         !patterns_matching(name).empty();
}

std::vector<std::shared_ptr<Listener>> BusState::patterns_matching(const std::string& name) const {
  std::vector<std::shared_ptr<Listener>> matching;
  std::ranges::copy_if(patterns_, std::back_inserter(matching), [&](const auto& listener) {
    return fnmatch(listener->event.c_str(), name.c_str(), 0) == 0;
  });
  return matching;
}

void BusState::call_patterns(std::string_view name, const nlohmann::json& payload) {
  const auto matching = [&] {
    const std::scoped_lock lock(mutex_);
    return patterns_matching(std::string(name));
  };
  call_patterns(name, payload, matching());
}

void BusState::call_patterns(std::string_view name, const nlohmann::json& payload,
                             const std::vector<std::shared_ptr<Listener>>& patterns) const {
  const NamedJson named{.name = name, .payload = &payload};
  for (const auto& listener : patterns) {
    listener->late.is_overtaken(name);
    call_here(*listener, &named);
  }
}

void BusState::deliver_remote(std::string_view name, std::string_view type,
                              const RemotePayload& payload, bool is_retained) {
  if (stopped_.load(std::memory_order_acquire)) return;
  try {
    std::shared_ptr<const Channel> channel;
    std::vector<std::shared_ptr<Listener>> patterns;
    {
      const std::scoped_lock lock(mutex_);
      if (is_retained) {
        retained_.keep(name, {.type = std::string(type), .payload = payload, .is_of_others = true});
      }
      const auto found = channels_.find(EventName(name));
      if (found != channels_.end()) channel = found->second;
      if (!patterns_.empty()) patterns = patterns_matching(std::string(name));
    }
    if (!patterns.empty() && payload.buffers.empty()) {
      call_patterns(name, json_of(payload), patterns);
    }
    if (!channel) return;
    const auto listener = std::ranges::find_if(channel->listeners,
                                               [](const auto& it) { return it->codec != nullptr; });
    if (listener == channel->listeners.end()) return;
    const Codec& codec = *(*listener)->codec;
    if (codec.type != type) {
      return tell(name, fmt::format("carries {} where it comes from, and a listener takes {}", type,
                                    codec.type));
    }
    codec.decode(payload, Deliver([&](const void* value) {
                   for (const auto& it : channel->listeners) {
                     if (it->codec != nullptr) deliver(*it, *codec.payload, value);
                   }
                 }));
  } catch (...) {
    tell(name, std::current_exception());
  }
}

}  // namespace trainyard::detail

// The fields of what the scheduler wants done: see wire/struct_fields.h.
#pragma once

#include <string_view>
#include <tuple>

#include "model/command.h"
#include "wire/resource_fields.h"
#include "wire/struct_fields.h"

namespace trainyard::wire {

template <>
inline constexpr std::string_view kWordFor<model::StartAttempt> = "start_attempt";
template <>
inline constexpr std::string_view kWordFor<model::GrantDevice> = "grant_device";
template <>
inline constexpr std::string_view kWordFor<model::SignalAttempt> = "signal_attempt";
template <>
inline constexpr std::string_view kWordFor<model::StopAttempt> = "stop_attempt";
template <>
inline constexpr std::string_view kWordFor<model::Answer> = "answer";

template <>
inline constexpr auto kFields<model::StartAttempt> = std::tuple(
    field("key", &model::StartAttempt::key), field("promise", &model::StartAttempt::promise),
    field("site", &model::StartAttempt::site),
    field("memory_max", &model::StartAttempt::memory_max),
    field("gpu_memory_max", &model::StartAttempt::gpu_memory_max));

template <>
inline constexpr auto kFields<model::GrantDevice> = std::tuple(
    field("key", &model::GrantDevice::key), field("promise", &model::GrantDevice::promise),
    field("site", &model::GrantDevice::site), field("memory_max", &model::GrantDevice::memory_max),
    field("gpu_memory_max", &model::GrantDevice::gpu_memory_max));

template <>
inline constexpr auto kFields<model::SignalAttempt> = std::tuple(
    field("key", &model::SignalAttempt::key), field("signal", &model::SignalAttempt::signal));

template <>
inline constexpr auto kFields<model::StopAttempt> =
    std::tuple(field("key", &model::StopAttempt::key), field("kill", &model::StopAttempt::kill));

template <>
inline constexpr auto kFields<model::Answer> =
    std::tuple(field("request", &model::Answer::request), field("done", &model::Answer::done));

}  // namespace trainyard::wire

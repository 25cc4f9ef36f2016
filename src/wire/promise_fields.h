// The fields of what yards promise, as their neighbours see it: see wire/struct_fields.h. The text
// of promise files (wire/promises_text.h) does not do for these: it is kept within limits, as
// anybody may have written it, so that not all values survive it.
#pragma once

#include <tuple>

#include "model/promises.h"
#include "wire/resource_fields.h"
#include "wire/struct_fields.h"

namespace trainyard::wire {

template <>
inline constexpr auto kFields<model::CardPromise> = std::tuple(
    field("uuid", &model::CardPromise::uuid), field("memory", &model::CardPromise::memory),
    field("unused", &model::CardPromise::unused), field("tasks", &model::CardPromise::tasks),
    field("whole", &model::CardPromise::whole), field("sharing", &model::CardPromise::sharing),
    field("since_unix_s", &model::CardPromise::since_unix_s));

template <>
inline constexpr auto kFields<model::HeldPromise> = std::tuple(
    field("memory", &model::HeldPromise::memory), field("unused", &model::HeldPromise::unused),
    field("cpus", &model::HeldPromise::cpus), field("tasks", &model::HeldPromise::tasks),
    field("since_unix_s", &model::HeldPromise::since_unix_s),
    field("cards", &model::HeldPromise::cards));

template <>
inline constexpr auto kFields<model::Want> =
    std::tuple(field("memory", &model::Want::memory), field("cpus", &model::Want::cpus),
               field("gpus", &model::Want::gpus), field("gpu_memory", &model::Want::gpu_memory),
               field("since_unix_s", &model::Want::since_unix_s));

template <>
inline constexpr auto kFields<model::DropOuts> =
    std::tuple(field("uuid", &model::DropOuts::uuid), field("number", &model::DropOuts::number),
               field("slice", &model::DropOuts::slice), field("times", &model::DropOuts::times),
               field("avoided_until_unix_s", &model::DropOuts::avoided_until_unix_s));

template <>
inline constexpr auto kFields<model::Promises> = std::tuple(
    field("ticket", &model::Promises::ticket), field("run", &model::Promises::run),
    field("name", &model::Promises::name), field("memory_total", &model::Promises::memory_total),
    field("cpus_total", &model::Promises::cpus_total), field("held", &model::Promises::held),
    field("claimed", &model::Promises::claimed), field("want", &model::Promises::want),
    field("drop_outs", &model::Promises::drop_outs));

template <>
inline constexpr auto kFields<model::Neighbour> = std::tuple(
    field("user", &model::Neighbour::user), field("is_ours", &model::Neighbour::is_ours),
    field("user_name", &model::Neighbour::user_name),
    field("midnight_unix_s", &model::Neighbour::midnight_unix_s),
    field("waits", &model::Neighbour::waits), field("goes_first", &model::Neighbour::goes_first),
    field("its", &model::Neighbour::its));

}  // namespace trainyard::wire

// The fields of what a task asks for, of what a machine has, and of how things are named: see
// wire/struct_fields.h.
#pragma once

#include <string_view>
#include <tuple>

#include "base/bytes.h"
#include "base/time.h"
#include "model/code.h"
#include "model/ids.h"
#include "model/resources.h"
#include "model/site_wish.h"
#include "wire/struct_fields.h"

namespace trainyard::wire {

template <>
inline constexpr auto kOnlyMember<Bytes> = &Bytes::count;
template <>
inline constexpr auto kOnlyMember<Instant> = &Instant::since_start;
template <>
inline constexpr auto kOnlyMember<model::Cpus> = &model::Cpus::milli;
template <>
inline constexpr auto kOnlyMember<model::TaskIndex> = &model::TaskIndex::value;
template <>
inline constexpr auto kOnlyMember<model::GroupIndex> = &model::GroupIndex::value;
template <>
inline constexpr auto kOnlyMember<model::ShapeIndex> = &model::ShapeIndex::value;
template <>
inline constexpr auto kOnlyMember<model::MachineIndex> = &model::MachineIndex::value;
template <>
inline constexpr auto kOnlyMember<model::GpuIndex> = &model::GpuIndex::value;

template <>
inline constexpr auto kFields<model::GpuPlace> =
    std::tuple(field("machine", &model::GpuPlace::machine), field("gpu", &model::GpuPlace::gpu));

template <>
inline constexpr auto kFields<model::AttemptKey> = std::tuple(
    field("task", &model::AttemptKey::task), field("attempt", &model::AttemptKey::attempt));

template <>
inline constexpr auto kFields<model::GpuSharing> =
    std::tuple(field("utilization", &model::GpuSharing::utilization),
               field("max_per_gpu", &model::GpuSharing::max_per_gpu));

template <>
inline constexpr auto kFields<model::SiteWish> =
    std::tuple(field("machine", &model::SiteWish::machine), field("gpu", &model::SiteWish::gpu));

template <>
inline constexpr auto kFields<model::Request> = std::tuple(
    field("memory", &model::Request::memory), field("cpus", &model::Request::cpus),
    field("gpus", &model::Request::gpus), field("gpu_memory", &model::Request::gpu_memory),
    field("gpu", &model::Request::gpu), field("largest", &model::Request::largest),
    field("listed_only", &model::Request::listed_only), field("sharing", &model::Request::sharing),
    field("disk", &model::Request::disk), field("where", &model::Request::where),
    field("avoids", &model::Request::avoids));

template <>
constexpr std::string_view word_of(model::GpuMaker value) {
  switch (value) {
    case model::GpuMaker::Nvidia:
      return "nvidia";
    case model::GpuMaker::Amd:
      return "amd";
  }
  return {};
}

template <>
inline constexpr auto kFields<model::Gpu> =
    std::tuple(field("number", &model::Gpu::number), field("uuid", &model::Gpu::uuid),
               field("name", &model::Gpu::name), field("pci", &model::Gpu::pci),
               field("memory", &model::Gpu::memory), field("speed", &model::Gpu::speed),
               field("maker", &model::Gpu::maker), field("slice", &model::Gpu::slice),
               field("late", &model::Gpu::late), field("cuda_number", &model::Gpu::cuda_number));

template <>
inline constexpr auto kFields<model::Capacity> =
    std::tuple(field("memory", &model::Capacity::memory), field("cpus", &model::Capacity::cpus),
               field("processes_max", &model::Capacity::processes_max),
               field("processes_max_reason", &model::Capacity::processes_max_reason),
               field("gpus", &model::Capacity::gpus),
               field("no_gpus_reason", &model::Capacity::no_gpus_reason));

template <>
inline constexpr auto kFields<model::Site> =
    std::tuple(field("machine", &model::Site::machine), field("gpus", &model::Site::gpus));

template <>
inline constexpr auto kFields<model::Usage> = std::tuple(
    field("memory_peak", &model::Usage::memory_peak),
    field("memory_at_least", &model::Usage::memory_at_least),
    field("gpu_memory_peak", &model::Usage::gpu_memory_peak),
    field("gpu_capped", &model::Usage::gpu_capped), field("cpu_time", &model::Usage::cpu_time));

template <>
inline constexpr auto kFields<model::Code> =
    std::tuple(field("root", &model::Code::root), field("commit", &model::Code::commit),
               field("changes", &model::Code::changes));

}  // namespace trainyard::wire

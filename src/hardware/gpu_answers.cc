#include "hardware/gpu_answers.h"

#include <cstdint>
#include <utility>

#include "base/bytes.h"
#include "model/resources.h"
#include "sys/packing.h"

namespace trainyard::hardware {
namespace {

void pack(sys::Packing& packing, const model::Gpu& gpu) {
  packing.add(gpu.number);
  for (const std::string* const text : {&gpu.uuid, &gpu.name, &gpu.pci}) packing.add(*text);
  packing.add(gpu.memory.count);
  packing.add(gpu.speed);
  packing.add(gpu.maker == model::GpuMaker::Amd);
  packing.add(gpu.slice.value_or(-1));
  packing.add(gpu.late);
  packing.add(gpu.cuda_number.value_or(-1));
}

model::Gpu unpack_gpu(sys::Unpacking& packed) {
  model::Gpu gpu;
  gpu.number = packed.number<int>();
  for (std::string* const each : {&gpu.uuid, &gpu.name, &gpu.pci}) *each = packed.text();
  gpu.memory = {packed.number<std::int64_t>()};
  gpu.speed = packed.number<std::int64_t>();
  gpu.maker = packed.number<bool>() ? model::GpuMaker::Amd : model::GpuMaker::Nvidia;
  if (const int slice = packed.number<int>(); slice >= 0) gpu.slice = slice;
  gpu.late = packed.number<bool>();
  if (const int number = packed.number<int>(); number >= 0) gpu.cuda_number = number;
  return gpu;
}

}  // namespace

std::string pack_list(const GpuList& list) {
  sys::Packing packing;
  packing.add(static_cast<std::uint32_t>(list.gpus.size()));
  for (const model::Gpu& gpu : list.gpus) pack(packing, gpu);
  packing.add(list.none_reason);
  packing.add(static_cast<std::uint32_t>(list.notes.size()));
  for (const std::string& note : list.notes) packing.add(note);
  return std::move(packing).take();
}

GpuList unpack_list(std::string_view text) {
  sys::Unpacking packed(text);
  GpuList list;
  list.gpus.resize(packed.count());
  for (model::Gpu& gpu : list.gpus) gpu = unpack_gpu(packed);
  list.none_reason = packed.text();
  list.notes.resize(packed.count());
  for (std::string& note : list.notes) note = packed.text();
  return list;
}

std::string pack_states(std::span<const GpuState> states) {
  sys::Packing packing;
  for (const GpuState& state : states) {
    packing.add(state.present);
    packing.add(state.processes_known);
    packing.add(state.utilization.has_value());
    if (state.utilization) packing.add(*state.utilization);
    packing.add(state.used.count);
    packing.add(static_cast<std::uint32_t>(state.processes.size()));
    for (const GpuProcess& process : state.processes) {
      packing.add(process.pid);
      packing.add(process.memory.count);
      packing.add(process.memory_known);
      packing.add(process.draws);
    }
    packing.add(state.found.has_value());
    if (state.found) pack(packing, *state.found);
  }
  return std::move(packing).take();
}

std::vector<GpuState> unpack_states(std::string_view text, std::size_t count) {
  sys::Unpacking packed(text);
  std::vector<GpuState> states(count);
  for (GpuState& state : states) {
    state.present = packed.number<bool>();
    state.processes_known = packed.number<bool>();
    if (packed.number<bool>()) state.utilization = packed.number<double>();
    state.used = {packed.number<std::int64_t>()};
    state.processes.resize(packed.count());
    for (GpuProcess& process : state.processes) {
      process.pid = packed.number<std::int64_t>();
      process.memory = {packed.number<std::int64_t>()};
      process.memory_known = packed.number<bool>();
      process.draws = packed.number<bool>();
    }
    if (packed.number<bool>()) state.found = unpack_gpu(packed);
  }
  return states;
}

}  // namespace trainyard::hardware

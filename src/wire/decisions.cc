#include "wire/decisions.h"

#include <string_view>
#include <tuple>

#include "model/status.h"
#include "model/waiting.h"
#include "wire/command_fields.h"
#include "wire/plan_fields.h"
#include "wire/promise_fields.h"
#include "wire/struct_fields.h"
#include "wire/value_writer.h"

namespace trainyard::wire {

template <>
inline std::string_view word_of(Status value) {
  return trainyard::to_text(value);
}
template <>
inline std::string_view word_of(model::Failure value) {
  return model::to_text(value);
}
template <>
inline std::string_view word_of(model::Cause value) {
  return model::to_text(value);
}
template <>
constexpr std::string_view word_of(Stage value) {
  switch (value) {
    case Stage::Load:
      return "load";
    case Stage::Train:
      return "train";
  }
  return {};
}
template <>
constexpr std::string_view word_of(model::GroupPhase value) {
  switch (value) {
    case model::GroupPhase::Blocked:
      return "blocked";
    case model::GroupPhase::Running:
      return "running";
    case model::GroupPhase::Finished:
      return "finished";
    case model::GroupPhase::Failed:
      return "failed";
    case model::GroupPhase::Skipped:
      return "skipped";
    case model::GroupPhase::Stopped:
      return "stopped";
  }
  return {};
}

template <>
inline constexpr std::string_view kWordFor<model::TaskChanged> = "task";
template <>
inline constexpr std::string_view kWordFor<model::GroupChanged> = "group";
template <>
inline constexpr std::string_view kWordFor<model::ReasonChanged> = "reason";
template <>
inline constexpr std::string_view kWordFor<model::HeadroomSeen> = "headroom";
template <>
inline constexpr std::string_view kWordFor<model::SharingMeasured> = "sharing";
template <>
inline constexpr std::string_view kWordFor<model::Reached> = "reached";
template <>
inline constexpr std::string_view kWordFor<model::Learned> = "learned";
template <>
inline constexpr std::string_view kWordFor<model::SaidOfTask> = "said";

template <>
inline constexpr auto kFields<model::TaskChanged> = std::tuple(
    field("key", &model::TaskChanged::key), field("status", &model::TaskChanged::status),
    field("verdict", &model::TaskChanged::verdict), field("failure", &model::TaskChanged::failure),
    field("stage", &model::TaskChanged::stage), field("exit_code", &model::TaskChanged::exit_code),
    field("message", &model::TaskChanged::message));

template <>
inline constexpr auto kFields<model::GroupChanged> = std::tuple(
    field("group", &model::GroupChanged::group), field("phase", &model::GroupChanged::phase),
    field("message", &model::GroupChanged::message));

template <>
inline constexpr auto kFields<model::Reason> = std::tuple(
    field("cause", &model::Reason::cause), field("needs", &model::Reason::needs),
    field("parallel_max", &model::Reason::parallel_max), field("groups", &model::Reason::groups),
    field("refusal", &model::Reason::refusal), field("first", &model::Reason::first),
    field("first_since", &model::Reason::first_since),
    field("not_before", &model::Reason::not_before), field("machine", &model::Reason::machine),
    field("per_gpu_measured", &model::Reason::per_gpu_measured),
    field("own_until_known", &model::Reason::own_until_known),
    field("gpu_memory_seen", &model::Reason::gpu_memory_seen));

template <>
inline constexpr auto kFields<model::ReasonChanged> = std::tuple(
    field("shape", &model::ReasonChanged::shape), field("reason", &model::ReasonChanged::reason));

template <>
inline constexpr auto kFields<model::Headroom::Card> = std::tuple(
    field("label", &model::Headroom::Card::label),
    field("present", &model::Headroom::Card::present),
    field("whole", &model::Headroom::Card::whole),
    field("holders", &model::Headroom::Card::holders),
    field("tasks", &model::Headroom::Card::tasks),
    field("utilization", &model::Headroom::Card::utilization),
    field("tasks_max", &model::Headroom::Card::tasks_max),
    field("free", &model::Headroom::Card::free),
    field("of_others", &model::Headroom::Card::of_others),
    field("lingering", &model::Headroom::Card::lingering),
    field("avoided_for", &model::Headroom::Card::avoided_for),
    field("uuid", &model::Headroom::Card::uuid), field("drained", &model::Headroom::Card::drained),
    field("name", &model::Headroom::Card::name),
    field("last_resort", &model::Headroom::Card::last_resort));

template <>
inline constexpr auto kFields<model::Headroom> = std::tuple(
    field("at", &model::Headroom::at), field("memory_free", &model::Headroom::memory_free),
    field("memory_held", &model::Headroom::memory_held),
    field("memory_of_others", &model::Headroom::memory_of_others),
    field("memory_kept_free", &model::Headroom::memory_kept_free),
    field("memory_kept_by", &model::Headroom::memory_kept_by),
    field("holders", &model::Headroom::holders), field("cpus", &model::Headroom::cpus),
    field("cpus_free", &model::Headroom::cpus_free),
    field("cpu_holders", &model::Headroom::cpu_holders),
    field("cpu_used_by_others", &model::Headroom::cpu_used_by_others),
    field("cpu_utilization_max", &model::Headroom::cpu_utilization_max),
    field("gpu_utilization_max", &model::Headroom::gpu_utilization_max),
    field("processes_max", &model::Headroom::processes_max),
    field("processes_reason", &model::Headroom::processes_reason),
    field("ahead", &model::Headroom::ahead), field("waiting_max", &model::Headroom::waiting_max),
    field("try_first_time", &model::Headroom::try_first_time),
    field("gpus", &model::Headroom::gpus), field("neighbours", &model::Headroom::neighbours),
    field("gpus_max", &model::Headroom::gpus_max),
    field("gpus_max_until", &model::Headroom::gpus_max_until),
    field("disk_free", &model::Headroom::disk_free),
    field("disk_promised", &model::Headroom::disk_promised),
    field("disk_holders", &model::Headroom::disk_holders));

template <>
inline constexpr auto kFields<model::HeadroomSeen> =
    std::tuple(field("headroom", &model::HeadroomSeen::headroom),
               field("machine", &model::HeadroomSeen::machine));

template <>
inline constexpr auto kFields<model::Learned> = std::tuple(
    field("shape", &model::Learned::shape), field("memory", &model::Learned::memory),
    field("gpu_memory", &model::Learned::gpu_memory), field("tasks", &model::Learned::tasks));

template <>
inline constexpr auto kFields<model::Decision> = std::tuple(
    field("changes", &model::Decision::changes), field("commands", &model::Decision::commands));

std::string to_text(const model::Decision& decision) {
  std::string text;
  append_value(text, decision);
  return text;
}

}  // namespace trainyard::wire

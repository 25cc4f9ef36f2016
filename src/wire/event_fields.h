// The fields of what can happen: see wire/struct_fields.h.
#pragma once

#include <string_view>
#include <tuple>

#include "model/event.h"
#include "wire/plan_fields.h"
#include "wire/promise_fields.h"
#include "wire/resource_fields.h"
#include "wire/struct_fields.h"

namespace trainyard::wire {

template <>
constexpr std::string_view word_of(model::Said value) {
  switch (value) {
    case model::Said::Loading:
      return "loading";
    case model::Said::Loaded:
      return "loaded";
    case model::Said::Training:
      return "training";
    case model::Said::Trained:
      return "trained";
    case model::Said::OutOfMemory:
      return "out_of_memory";
    case model::Said::Failed:
      return "failed";
    case model::Said::Nonsense:
      return "nonsense";
  }
  return {};
}

template <>
inline constexpr std::string_view kWordFor<model::ExitedWith> = "exited";
template <>
inline constexpr std::string_view kWordFor<model::KilledBy> = "killed";
template <>
inline constexpr std::string_view kWordFor<model::NotStarted> = "not_started";
template <>
inline constexpr std::string_view kWordFor<model::Vanished> = "vanished";
template <>
inline constexpr std::string_view kWordFor<model::MachineJoined> = "machine_joined";
template <>
inline constexpr std::string_view kWordFor<model::MachineGone> = "machine_gone";
template <>
inline constexpr std::string_view kWordFor<model::AttemptStarted> = "attempt_started";
template <>
inline constexpr std::string_view kWordFor<model::StageReported> = "stage_reported";
template <>
inline constexpr std::string_view kWordFor<model::Progressed> = "progressed";
template <>
inline constexpr std::string_view kWordFor<model::AttemptEnded> = "attempt_ended";
template <>
inline constexpr std::string_view kWordFor<model::Sampled> = "sampled";
template <>
inline constexpr std::string_view kWordFor<model::GpusSampled> = "gpus_sampled";
template <>
inline constexpr std::string_view kWordFor<model::KeeperSilent> = "keeper_silent";
template <>
inline constexpr std::string_view kWordFor<model::InterruptAsked> = "interrupt_asked";
template <>
inline constexpr std::string_view kWordFor<model::KillAsked> = "kill_asked";
template <>
inline constexpr std::string_view kWordFor<model::RetryAsked> = "retry_asked";
template <>
inline constexpr std::string_view kWordFor<model::HoldAsked> = "hold_asked";
template <>
inline constexpr std::string_view kWordFor<model::PriorityAsked> = "priority_asked";
template <>
inline constexpr std::string_view kWordFor<model::BatchAdded> = "batch_added";
template <>
inline constexpr std::string_view kWordFor<model::NeighboursSeen> = "neighbours_seen";
template <>
inline constexpr std::string_view kWordFor<model::ClaimRefused> = "claim_refused";
template <>
inline constexpr std::string_view kWordFor<model::LimitsChanged> = "limits_changed";
template <>
inline constexpr std::string_view kWordFor<model::AttemptFound> = "attempt_found";
template <>
inline constexpr std::string_view kWordFor<model::CodeFound> = "code_found";
template <>
inline constexpr std::string_view kWordFor<model::TimePassed> = "time_passed";

template <>
inline constexpr auto kFields<model::ExitedWith> =
    std::tuple(field("code", &model::ExitedWith::code));

template <>
inline constexpr auto kFields<model::KilledBy> =
    std::tuple(field("signal", &model::KilledBy::signal),
               field("out_of_memory", &model::KilledBy::out_of_memory),
               field("over_limit", &model::KilledBy::over_limit));

template <>
inline constexpr auto kFields<model::NotStarted> = std::tuple(
    field("why", &model::NotStarted::why), field("of_machine", &model::NotStarted::of_machine));

template <>
inline constexpr auto kFields<model::Vanished> = std::tuple(field("why", &model::Vanished::why));

template <>
inline constexpr auto kFields<model::RanksAtEnd> = std::tuple(
    field("failed", &model::RanksAtEnd::failed), field("finished", &model::RanksAtEnd::finished),
    field("largest", &model::RanksAtEnd::largest),
    field("largest_memory", &model::RanksAtEnd::largest_memory));

template <>
inline constexpr auto kFields<model::TaskSample> =
    std::tuple(field("key", &model::TaskSample::key), field("memory", &model::TaskSample::memory));

template <>
inline constexpr auto kFields<model::DiskRoom> =
    std::tuple(field("free", &model::DiskRoom::free), field("total", &model::DiskRoom::total));

template <>
inline constexpr auto kFields<model::GpuReading> = std::tuple(
    field("present", &model::GpuReading::present), field("used", &model::GpuReading::used),
    field("of_strangers", &model::GpuReading::of_strangers),
    field("processes_known", &model::GpuReading::processes_known),
    field("utilization", &model::GpuReading::utilization),
    field("other_user", &model::GpuReading::other_user));

template <>
inline constexpr auto kFields<model::GpuUse> =
    std::tuple(field("key", &model::GpuUse::key), field("gpu", &model::GpuUse::gpu),
               field("memory", &model::GpuUse::memory));

template <>
inline constexpr auto kFields<model::GpuFound> =
    std::tuple(field("gpu", &model::GpuFound::gpu), field("what", &model::GpuFound::what));

template <>
inline constexpr auto kFields<model::MachineJoined> = std::tuple(
    field("machine", &model::MachineJoined::machine), field("name", &model::MachineJoined::name),
    field("capacity", &model::MachineJoined::capacity),
    field("until", &model::MachineJoined::until));

template <>
inline constexpr auto kFields<model::MachineGone> = std::tuple(
    field("machine", &model::MachineGone::machine), field("why", &model::MachineGone::why));

template <>
inline constexpr auto kFields<model::AttemptStarted> = std::tuple(
    field("key", &model::AttemptStarted::key), field("pid", &model::AttemptStarted::pid),
    field("capped_by", &model::AttemptStarted::capped_by),
    field("began", &model::AttemptStarted::began), field("code", &model::AttemptStarted::code));

template <>
inline constexpr auto kFields<model::StageReported> =
    std::tuple(field("key", &model::StageReported::key), field("said", &model::StageReported::said),
               field("message", &model::StageReported::message),
               field("of_gpu", &model::StageReported::of_gpu),
               field("traceback", &model::StageReported::traceback),
               field("capped_by", &model::StageReported::capped_by));

template <>
inline constexpr auto kFields<model::Progressed> = std::tuple(
    field("key", &model::Progressed::key), field("fraction", &model::Progressed::fraction),
    field("values", &model::Progressed::values));

template <>
inline constexpr auto kFields<model::AttemptEnded> = std::tuple(
    field("key", &model::AttemptEnded::key), field("end", &model::AttemptEnded::end),
    field("usage", &model::AttemptEnded::usage), field("result", &model::AttemptEnded::result),
    field("warning", &model::AttemptEnded::warning),
    field("out_of_memory", &model::AttemptEnded::out_of_memory),
    field("of_gpu", &model::AttemptEnded::of_gpu),
    field("last_words", &model::AttemptEnded::last_words),
    field("has_checkpoint", &model::AttemptEnded::has_checkpoint),
    field("ranks", &model::AttemptEnded::ranks), field("ended", &model::AttemptEnded::ended));

template <>
inline constexpr auto kFields<model::Sampled> =
    std::tuple(field("memory_available", &model::Sampled::memory_available),
               field("cpu_used_by_others", &model::Sampled::cpu_used_by_others),
               field("tasks", &model::Sampled::tasks), field("disk", &model::Sampled::disk),
               field("machine", &model::Sampled::machine));

template <>
inline constexpr auto kFields<model::GpusSampled> =
    std::tuple(field("gpus", &model::GpusSampled::gpus), field("uses", &model::GpusSampled::uses),
               field("found", &model::GpusSampled::found),
               field("ends_follow", &model::GpusSampled::ends_follow),
               field("machine", &model::GpusSampled::machine));

template <>
inline constexpr auto kFields<model::KeeperSilent> = std::tuple(
    field("silent", &model::KeeperSilent::silent), field("another", &model::KeeperSilent::another),
    field("machine", &model::KeeperSilent::machine));

template <>
inline constexpr auto kFields<model::InterruptAsked> =
    std::tuple(field("why", &model::InterruptAsked::why));

template <>
inline constexpr auto kFields<model::KillAsked> = std::tuple(
    field("task", &model::KillAsked::task), field("request", &model::KillAsked::request));

template <>
inline constexpr auto kFields<model::RetryAsked> = std::tuple(
    field("task", &model::RetryAsked::task), field("request", &model::RetryAsked::request),
    field("memory", &model::RetryAsked::memory),
    field("gpu_memory", &model::RetryAsked::gpu_memory),
    field("time_limit", &model::RetryAsked::time_limit));

template <>
inline constexpr auto kFields<model::HoldAsked> =
    std::tuple(field("task", &model::HoldAsked::task), field("request", &model::HoldAsked::request),
               field("hold", &model::HoldAsked::hold));

template <>
inline constexpr auto kFields<model::PriorityAsked> = std::tuple(
    field("task", &model::PriorityAsked::task), field("request", &model::PriorityAsked::request),
    field("priority", &model::PriorityAsked::priority));

template <>
inline constexpr auto kFields<model::BatchAdded> =
    std::tuple(field("number", &model::BatchAdded::number), field("plan", &model::BatchAdded::plan),
               field("is_promised", &model::BatchAdded::is_promised),
               field("more_follow", &model::BatchAdded::more_follow));

template <>
inline constexpr auto kFields<model::NeighboursSeen> =
    std::tuple(field("neighbours", &model::NeighboursSeen::neighbours),
               field("machine", &model::NeighboursSeen::machine));

template <>
inline constexpr auto kFields<model::ClaimRefused> =
    std::tuple(field("attempts", &model::ClaimRefused::attempts),
               field("neighbours", &model::ClaimRefused::neighbours),
               field("no_more", &model::ClaimRefused::no_more),
               field("machine", &model::ClaimRefused::machine));

template <>
inline constexpr auto kFields<model::LimitsChanged> = std::tuple(
    field("gpus_max", &model::LimitsChanged::gpus_max),
    field("until", &model::LimitsChanged::until), field("drained", &model::LimitsChanged::drained),
    field("cleared", &model::LimitsChanged::cleared),
    field("machine", &model::LimitsChanged::machine));

template <>
inline constexpr auto kFields<model::AttemptFound> = std::tuple(
    field("key", &model::AttemptFound::key), field("promise", &model::AttemptFound::promise),
    field("site", &model::AttemptFound::site),
    field("gpu_memory_max", &model::AttemptFound::gpu_memory_max),
    field("since", &model::AttemptFound::since),
    field("more_follow", &model::AttemptFound::more_follow));

template <>
inline constexpr auto kFields<model::CodeFound> =
    std::tuple(field("code", &model::CodeFound::code), field("diff", &model::CodeFound::diff),
               field("attempts", &model::CodeFound::attempts));

template <>
inline constexpr auto kFields<model::TimePassed> = std::tuple();

}  // namespace trainyard::wire

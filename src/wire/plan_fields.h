// The fields of a plan, and of the terms of its tasks: see wire/struct_fields.h.
#pragma once

#include <string_view>
#include <tuple>

#include "model/plan.h"
#include "model/status.h"
#include "model/terms.h"
#include "wire/resource_fields.h"
#include "wire/struct_fields.h"

namespace trainyard::wire {

template <>
constexpr std::string_view word_of(model::GpuMemoryLimit value) {
  switch (value) {
    case model::GpuMemoryLimit::None:
      return "none";
    case model::GpuMemoryLimit::Soft:
      return "soft";
    case model::GpuMemoryLimit::Hard:
      return "hard";
  }
  return {};
}

template <>
constexpr std::string_view word_of(model::RunIf value) {
  switch (value) {
    case model::RunIf::Success:
      return "success";
    case model::RunIf::Failure:
      return "failure";
    case model::RunIf::Always:
      return "always";
  }
  return {};
}

template <>
constexpr std::string_view word_of(model::Verdict value) {
  switch (value) {
    case model::Verdict::None:
      return "none";
    case model::Verdict::Finished:
      return "finished";
    case model::Verdict::Failed:
      return "failed";
    case model::Verdict::Skipped:
      return "skipped";
    case model::Verdict::Stopped:
      return "stopped";
    case model::Verdict::NotSelected:
      return "not_selected";
    case model::Verdict::NotNeeded:
      return "not_needed";
  }
  return {};
}

template <>
inline constexpr auto kFields<model::EarlySignal> = std::tuple(
    field("number", &model::EarlySignal::number), field("before", &model::EarlySignal::before));

template <>
inline constexpr auto kFields<model::Retries> =
    std::tuple(field("failures", &model::Retries::failures),
               field("out_of_memory", &model::Retries::out_of_memory),
               field("after_time_limit", &model::Retries::after_time_limit),
               field("delay", &model::Retries::delay));

template <>
inline constexpr auto kFields<model::Terms> = std::tuple(
    field("request", &model::Terms::request), field("time_limit", &model::Terms::time_limit),
    field("two_phase", &model::Terms::two_phase), field("ranks", &model::Terms::ranks),
    field("workers", &model::Terms::workers), field("memory_hard", &model::Terms::memory_hard),
    field("gpu_memory_limit", &model::Terms::gpu_memory_limit),
    field("priority", &model::Terms::priority), field("run_if", &model::Terms::run_if),
    field("start_after", &model::Terms::start_after),
    field("preemptible", &model::Terms::preemptible), field("retries", &model::Terms::retries),
    field("early_signal", &model::Terms::early_signal),
    field("checkpoints", &model::Terms::checkpoints),
    field("load_expected", &model::Terms::load_expected),
    field("train_expected", &model::Terms::train_expected),
    field("learns_memory", &model::Terms::learns_memory),
    field("learns_gpu_memory", &model::Terms::learns_gpu_memory),
    field("memory_least", &model::Terms::memory_least),
    field("gpu_memory_least", &model::Terms::gpu_memory_least));

template <>
inline constexpr auto kFields<model::PlannedGroup> = std::tuple(
    field("name", &model::PlannedGroup::name), field("called", &model::PlannedGroup::called),
    field("directory", &model::PlannedGroup::directory),
    field("needs", &model::PlannedGroup::needs),
    field("needs_earlier", &model::PlannedGroup::needs_earlier),
    field("needs_by_task", &model::PlannedGroup::needs_by_task),
    field("parallel_max", &model::PlannedGroup::parallel_max),
    field("fail_fast", &model::PlannedGroup::fail_fast),
    field("try_first", &model::PlannedGroup::try_first));

template <>
inline constexpr auto kFields<model::Shape> =
    std::tuple(field("group", &model::Shape::group), field("terms", &model::Shape::terms));

template <>
inline constexpr auto kFields<model::PlannedTask> =
    std::tuple(field("shape", &model::PlannedTask::shape),
               field("first_attempt", &model::PlannedTask::first_attempt),
               field("before", &model::PlannedTask::before));

template <>
inline constexpr auto kFields<model::TaskNeed> =
    std::tuple(field("task", &model::TaskNeed::task), field("needed", &model::TaskNeed::needed));

template <>
inline constexpr auto kFields<model::SaidOfTask> = std::tuple(
    field("task", &model::SaidOfTask::task), field("on_hold", &model::SaidOfTask::on_hold),
    field("priority", &model::SaidOfTask::priority));

template <>
inline constexpr auto kFields<model::MemoryTries> =
    std::tuple(field("load", &model::MemoryTries::load), field("train", &model::MemoryTries::train),
               field("preempted", &model::MemoryTries::preempted),
               field("crowded", &model::MemoryTries::crowded));

template <>
inline constexpr auto kFields<model::Reached> =
    std::tuple(field("task", &model::Reached::task), field("memory", &model::Reached::memory),
               field("gpu_memory", &model::Reached::gpu_memory),
               field("largest", &model::Reached::largest), field("tries", &model::Reached::tries));

template <>
inline constexpr auto kFields<model::TakenBefore> = std::tuple(
    field("task", &model::TakenBefore::task), field("memory", &model::TakenBefore::memory),
    field("gpu_memory", &model::TakenBefore::gpu_memory),
    field("gpu_memory_written", &model::TakenBefore::gpu_memory_written));

template <>
inline constexpr auto kFields<model::SharingMeasured> =
    std::tuple(field("shape", &model::SharingMeasured::shape),
               field("to_a_gpu", &model::SharingMeasured::to_a_gpu),
               field("factor", &model::SharingMeasured::factor),
               field("tasks", &model::SharingMeasured::tasks),
               field("to_a_gpu_max", &model::SharingMeasured::to_a_gpu_max));

template <>
inline constexpr auto kFields<model::FailedBefore> = std::tuple(
    field("task", &model::FailedBefore::task), field("message", &model::FailedBefore::message));

template <>
inline constexpr auto kFields<model::Plan> =
    std::tuple(field("groups", &model::Plan::groups), field("shapes", &model::Plan::shapes),
               field("tasks", &model::Plan::tasks), field("task_needs", &model::Plan::task_needs),
               field("reached", &model::Plan::reached), field("taken", &model::Plan::taken),
               field("said", &model::Plan::said), field("sharing", &model::Plan::sharing),
               field("failed", &model::Plan::failed));

}  // namespace trainyard::wire

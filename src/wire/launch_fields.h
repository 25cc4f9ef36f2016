// The fields of what is needed to start a process: see wire/struct_fields.h.
#pragma once

#include <tuple>

#include "model/launch.h"
#include "wire/resource_fields.h"
#include "wire/struct_fields.h"

namespace trainyard::wire {

template <>
inline constexpr auto kFields<model::Preload> = std::tuple(
    field("modules", &model::Preload::modules), field("interpreter", &model::Preload::interpreter),
    field("path", &model::Preload::path), field("environment", &model::Preload::environment),
    field("log_path", &model::Preload::log_path));

template <>
inline constexpr auto kFields<model::OwnRanks> = std::tuple(
    field("gpus", &model::OwnRanks::gpus), field("log_paths", &model::OwnRanks::log_paths));

template <>
inline constexpr auto kFields<model::RegionLimit> = std::tuple(
    field("region", &model::RegionLimit::region), field("most", &model::RegionLimit::most));

template <>
inline constexpr auto kFields<model::Launch> = std::tuple(
    field("cannot_start", &model::Launch::cannot_start),
    field("arguments", &model::Launch::arguments),
    field("environment", &model::Launch::environment),
    field("inherited", &model::Launch::inherited),
    field("user_variables", &model::Launch::user_variables),
    field("working_directory", &model::Launch::working_directory),
    field("task_directory", &model::Launch::task_directory),
    field("run_directory", &model::Launch::run_directory),
    field("checkpoint_directory", &model::Launch::checkpoint_directory),
    field("stdout_path", &model::Launch::stdout_path),
    field("stderr_path", &model::Launch::stderr_path),
    field("passes_term_on", &model::Launch::passes_term_on),
    field("term_to_all", &model::Launch::term_to_all),
    field("two_phase", &model::Launch::two_phase), field("ranks", &model::Launch::ranks),
    field("own_ranks", &model::Launch::own_ranks), field("forked", &model::Launch::forked),
    field("preload", &model::Launch::preload), field("memory_group", &model::Launch::memory_group),
    field("memory_max", &model::Launch::memory_max),
    field("region_limits", &model::Launch::region_limits),
    field("capped_by", &model::Launch::capped_by),
    field("result_path", &model::Launch::result_path),
    field("result_copy_path", &model::Launch::result_copy_path),
    field("journal_number", &model::Launch::journal_number),
    field("needed_directories", &model::Launch::needed_directories));

}  // namespace trainyard::wire

// The fields of the model's structs that are written as JSON: see wire/struct_fields.h.
#pragma once

#include "base/bytes.h"
#include "base/time.h"
#include "model/code.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/plan.h"
#include "model/promises.h"
#include "model/resources.h"
#include "model/site_wish.h"
#include "model/status.h"
#include "model/terms.h"
#include "wire/struct_fields.h"

namespace trainyard::wire {

// Requests of tasks, resources of machines, and identifiers.
TRAINYARD_NUMBER(Bytes, count);
TRAINYARD_NUMBER(Instant, since_start);
TRAINYARD_NUMBER(model::Cpus, milli);
TRAINYARD_NUMBER(model::TaskIndex, value);
TRAINYARD_NUMBER(model::GroupIndex, value);
TRAINYARD_NUMBER(model::ShapeIndex, value);
TRAINYARD_NUMBER(model::MachineIndex, value);
TRAINYARD_NUMBER(model::GpuIndex, value);
TRAINYARD_FIELDS(model::GpuPlace, machine, gpu);
TRAINYARD_FIELDS(model::AttemptKey, task, attempt);
TRAINYARD_FIELDS(model::GpuSharing, utilization, max_per_gpu);
TRAINYARD_FIELDS(model::SiteWish, machine, gpu);
TRAINYARD_FIELDS(model::Request, memory, cpus, gpus, gpu_memory, gpu, largest, listed_only, sharing,
                 disk, where, avoids);
TRAINYARD_WORDS(model::GpuMaker, (Nvidia, "nvidia"), (Amd, "amd"));
TRAINYARD_FIELDS(model::Gpu, number, uuid, name, pci, memory, speed, maker, slice, late,
                 cuda_number);
TRAINYARD_FIELDS(model::Capacity, memory, cpus, processes_max, processes_max_reason, gpus,
                 no_gpus_reason);
TRAINYARD_FIELDS(model::Site, machine, gpus);
TRAINYARD_FIELDS(model::Usage, memory_peak, memory_at_least, gpu_memory_peak, gpu_capped, cpu_time);
TRAINYARD_FIELDS(model::Code, root, commit, changes);

// A plan and the terms of its tasks.
TRAINYARD_WORDS(model::GpuMemoryLimit, (None, "none"), (Soft, "soft"), (Hard, "hard"));
TRAINYARD_WORDS(model::RunIf, (Success, "success"), (Failure, "failure"), (Always, "always"));
TRAINYARD_WORDS(model::Verdict, (None, "none"), (Finished, "finished"), (Failed, "failed"),
                (Skipped, "skipped"), (Stopped, "stopped"), (NotSelected, "not_selected"),
                (NotNeeded, "not_needed"));
TRAINYARD_FIELDS(model::EarlySignal, number, before);
TRAINYARD_FIELDS(model::Retries, failures, out_of_memory, after_time_limit, delay);
TRAINYARD_FIELDS(model::Terms, request, time_limit, two_phase, ranks, workers, memory_hard,
                 gpu_memory_limit, priority, run_if, start_after, preemptible, retries,
                 early_signal, checkpoints, load_expected, train_expected, learns_memory,
                 learns_gpu_memory, memory_least, gpu_memory_least);
TRAINYARD_FIELDS(model::PlannedGroup, name, called, directory, needs, needs_earlier, needs_by_task,
                 parallel_max, fail_fast, try_first);
TRAINYARD_FIELDS(model::Shape, group, terms);
TRAINYARD_FIELDS(model::PlannedTask, shape, first_attempt, before);
TRAINYARD_FIELDS(model::TaskNeed, task, needed);
TRAINYARD_ALTERNATIVE("said", model::SaidOfTask, task, on_hold, priority);
TRAINYARD_FIELDS(model::MemoryTries, load, train, preempted, crowded);
TRAINYARD_ALTERNATIVE("reached", model::Reached, task, memory, gpu_memory, largest, tries);
TRAINYARD_FIELDS(model::TakenBefore, task, memory, gpu_memory, gpu_memory_written);
TRAINYARD_ALTERNATIVE("sharing", model::SharingMeasured, shape, to_a_gpu, factor, tasks,
                      to_a_gpu_max);
TRAINYARD_FIELDS(model::FailedBefore, task, message);
TRAINYARD_FIELDS(model::Plan, groups, shapes, tasks, task_needs, reached, taken, said, sharing,
                 failed);

// Reservations of runs, as other runs see them. Promise files (wire/promises_text.h) have a
// dedicated format with limits that does not keep all values, as any user may have written one.
TRAINYARD_FIELDS(model::CardPromise, uuid, memory, unused, tasks, whole, sharing, since_unix_s);
TRAINYARD_FIELDS(model::HeldPromise, memory, unused, cpus, tasks, since_unix_s, cards);
TRAINYARD_FIELDS(model::Want, memory, cpus, gpus, gpu_memory, since_unix_s);
TRAINYARD_FIELDS(model::DropOuts, uuid, number, slice, times, avoided_until_unix_s);
TRAINYARD_FIELDS(model::Promises, ticket, run, numbering, name, memory_total, cpus_total, held,
                 claimed, want, drop_outs);
TRAINYARD_FIELDS(model::Neighbour, user, is_ours, user_name, midnight_unix_s, waits, goes_first,
                 we_wait, its);

// The start of a process.
TRAINYARD_FIELDS(model::Preload, modules, interpreter, path, environment, log_path);
TRAINYARD_FIELDS(model::OwnRanks, gpus, log_paths);
TRAINYARD_FIELDS(model::RegionLimit, region, most);
TRAINYARD_FIELDS(model::Launch, cannot_start, arguments, environment, inherited, user_variables,
                 working_directory, task_directory, run_directory, checkpoint_directory,
                 stdout_path, stderr_path, passes_term_on, term_to_all, two_phase, ranks, own_ranks,
                 forked, preload, memory_group, memory_max, region_limits, capped_by, result_path,
                 result_copy_path, journal_number, needed_directories);

// Commands of the scheduler.
TRAINYARD_ALTERNATIVE("start_attempt", model::StartAttempt, key, promise, site, memory_max,
                      gpu_memory_max);
TRAINYARD_ALTERNATIVE("grant_device", model::GrantDevice, key, promise, site, memory_max,
                      gpu_memory_max);
TRAINYARD_ALTERNATIVE("signal_attempt", model::SignalAttempt, key, signal);
TRAINYARD_ALTERNATIVE("stop_attempt", model::StopAttempt, key, kill);
TRAINYARD_ALTERNATIVE("answer", model::Answer, request, done);

// Events for the scheduler.
TRAINYARD_WORDS(model::Said, (Loading, "loading"), (Loaded, "loaded"), (Training, "training"),
                (Trained, "trained"), (OutOfMemory, "out_of_memory"), (Failed, "failed"),
                (Nonsense, "nonsense"));
TRAINYARD_ALTERNATIVE("exited", model::ExitedWith, code);
TRAINYARD_ALTERNATIVE("killed", model::KilledBy, signal, out_of_memory, over_limit);
TRAINYARD_ALTERNATIVE("not_started", model::NotStarted, why, of_machine);
TRAINYARD_ALTERNATIVE("vanished", model::Vanished, why);
TRAINYARD_FIELDS(model::RanksAtEnd, failed, finished, largest, largest_memory);
TRAINYARD_FIELDS(model::TaskSample, key, memory);
TRAINYARD_FIELDS(model::DiskRoom, free, total);
TRAINYARD_FIELDS(model::GpuReading, present, used, of_strangers, processes_known, utilization,
                 other_user);
TRAINYARD_FIELDS(model::GpuUse, key, gpu, memory);
TRAINYARD_FIELDS(model::GpuFound, gpu, what);
TRAINYARD_ALTERNATIVE("machine_joined", model::MachineJoined, machine, name, capacity, until);
TRAINYARD_ALTERNATIVE("machine_gone", model::MachineGone, machine, why);
TRAINYARD_ALTERNATIVE("attempt_started", model::AttemptStarted, key, pid, capped_by, began, code);
TRAINYARD_ALTERNATIVE("stage_reported", model::StageReported, key, said, message, of_gpu, traceback,
                      capped_by);
TRAINYARD_ALTERNATIVE("progressed", model::Progressed, key, fraction, values);
TRAINYARD_ALTERNATIVE("attempt_ended", model::AttemptEnded, key, end, usage, result, warning,
                      out_of_memory, of_gpu, last_words, has_checkpoint, ranks, ended, told_to_end);
TRAINYARD_ALTERNATIVE("sampled", model::Sampled, memory_available, cpu_used_by_others, tasks, disk,
                      machine);
TRAINYARD_ALTERNATIVE("gpus_sampled", model::GpusSampled, gpus, uses, found, ends_follow, machine);
TRAINYARD_ALTERNATIVE("keeper_silent", model::KeeperSilent, silent, another, machine);
TRAINYARD_ALTERNATIVE("interrupt_asked", model::InterruptAsked, why);
TRAINYARD_ALTERNATIVE("kill_asked", model::KillAsked, task, request);
TRAINYARD_ALTERNATIVE("retry_asked", model::RetryAsked, task, request, memory, gpu_memory,
                      time_limit);
TRAINYARD_ALTERNATIVE("hold_asked", model::HoldAsked, task, request, hold);
TRAINYARD_ALTERNATIVE("priority_asked", model::PriorityAsked, task, request, priority);
TRAINYARD_ALTERNATIVE("batch_added", model::BatchAdded, number, plan, is_promised, more_follow);
TRAINYARD_ALTERNATIVE("neighbours_seen", model::NeighboursSeen, neighbours, machine);
TRAINYARD_ALTERNATIVE("claim_refused", model::ClaimRefused, attempts, neighbours, no_more, machine);
TRAINYARD_ALTERNATIVE("limits_changed", model::LimitsChanged, gpus_max, until, drained, cleared,
                      machine);
TRAINYARD_ALTERNATIVE("attempt_found", model::AttemptFound, key, promise, site, gpu_memory_max,
                      since, more_follow);
TRAINYARD_ALTERNATIVE("code_found", model::CodeFound, code, diff, attempts);
TRAINYARD_ALTERNATIVE("time_passed", model::TimePassed);

}  // namespace trainyard::wire

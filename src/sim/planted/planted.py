#!/usr/bin/python3
"""Plants bugs in copies of the scheduler's sources, one at a time.

Each bug is a piece of text that stands exactly once in a file of src/schedule/, and what to write
in its place. A test builds the simulation with the copy and must find the bug by its checkers alone.

usage: planted.py list                     prints "NAME FILE" for each bug
       planted.py write NAME SOURCES OUT   writes the file with the bug in it
"""
import pathlib
import sys

# Name, file, what stands there, what is written in its place.
BUGS = [
    ("release_forgets_the_cpus", "ledger.cc",
     "  cpus_promised_ = cpus_promised_ - found->second.promise.cpus;\n",
     ""),
    ("admission_forgets_what_is_not_taken_yet", "ledger.cc",
     "available_ - outstanding_)",
     "available_)"),
    ("one_try_too_many", "another_try.cc",
     "  if (gone >= most) return std::nullopt;\n",
     "  if (gone > most) return std::nullopt;\n"),
    ("a_retry_does_not_wait", "state_tries.cc",
     "  if (next.delay > Duration{0}) return",
     "  if (next.delay < Duration{0}) return"),
    ("a_retry_waits_no_longer_than_the_one_before", "another_try.cc",
     "std::min(2 * delay, kRetryDelayMax)",
     "std::min(1 * delay, kRetryDelayMax)"),
    ("what_was_lost_spends_a_retry", "another_try.cc",
     "      add_one(lost);\n",
     "      add_one(lost);\n      add_one(failed);\n"),
    ("what_somebody_killed_is_tried_again", "state.cc",
     "  running.for_good = true;\n",
     "  running.for_good = cause != StopCause::KillAsked;\n"),
    ("a_group_opens_with_the_first_of_its_needs", "group_book.cc",
     "      case model::GroupPhase::Finished:\n        break;\n",
     "      case model::GroupPhase::Finished:\n        return {.phase = model::GroupPhase::Running, .cause = {}};\n"),
    ("a_later_batch_needs_the_groups_of_the_first", "state_batches.cc",
     "needed.value += start.group;",
     "needed.value += 0;"),
    ("a_later_batch_does_not_heed_an_interrupt", "state_batches.cc",
     "  if (interrupts_ > 0) {\n",
     "  if (interrupts_ > 9) {\n"),
    ("what_a_later_batch_needs_of_an_earlier_one_is_forgotten", "state_batches.cc",
     "    added.needs.push_back(earlier);\n",
     "    static_cast<void>(earlier);\n"),
    ("nothing_is_kept_for_the_oldest", "state_start.cc",
     "  return passed.times >= policy_.passes_max ||",
     "  return passed.times < 0 &&"),
    ("term_is_never_followed_by_kill", "state.cc",
     "  set_deadline(running, at + policy_.stop_grace);\n",
     "  set_deadline(running, std::optional<Instant>(at + 1000 * policy_.stop_grace));\n"),
    ("who_asked_for_a_kill_is_not_answered", "state.cc",
     "AnswerKill{.request = request, .done = true});\n  }\n  close_group_if_over",
     "AnswerKill{.request = request, .done = true});\n    out.commands.pop_back();\n  }\n"
     "  close_group_if_over"),
    ("a_reason_stays_when_nobody_waits", "state_start.cc",
     "  if (!waits_in_a_room(shape)) clear_reason(shape, out);\n",
     "  if (waits_in_a_room(shape)) clear_reason(shape, out);\n"),
    ("a_task_trains_without_its_cpus", "state_start.cc",
     "  const model::Request request = within_gpus(lane.request, lane.shape);\n"
     "  if (request.cpus > ledger_.cpus_free()) return model::Cause::Cpus;\n",
     "  const model::Request request = within_gpus(lane.request, lane.shape);\n"),
    ("what_an_ended_task_had_on_a_gpu_is_free_at_once", "gpu_ledger.cc",
     "    lingering_.push_back(\n"
     "        {.gpu = share.gpu, .memory = memory, .seen = share.memory, .until = at + linger_max_});\n",
     "    static_cast<void>(at + Duration{memory.count});\n"),
    ("a_gpu_of_ones_own_is_shared", "gpu_room.cc",
     "  if (!room.present || room.avoided || room.whole) return false;\n",
     "  if (!room.present || room.avoided) return false;\n"),
    ("a_retry_forgets_what_its_gpu_lacked", "state_tries.cc",
     "      grown_gpu_[running.key.task] = grown;\n",
     ""),
    ("a_script_that_left_while_it_waited_has_trained", "state_stages.cc",
     "  running.its_end_tells = false;\n",
     ""),
    ("ranks_train_again_though_one_of_them_is_gone", "state_stages.cc",
     " || shape_of(task).terms.ranks > 0",
     ""),
    ("a_signal_leaves_no_time_before_term", "state.cc",
     "  set_deadline(running, at + early.before);\n",
     "  set_deadline(running, std::max(at, at + early.before / 2));\n"),
    ("an_interrupted_task_is_given_no_more_than_before", "state_tries.cc",
     "std::min(running.memory_peak,",
     "std::min(running.promise.memory,"),
    ("the_kernel_is_not_told_of_a_hard_limit", "state_memory.cc",
     "memory_hard ? promised : Bytes{}",
     "memory_hard ? promised - promised : Bytes{}"),
    ("what_is_learned_has_no_margin", "estimates.cc",
     "  return percentile + Bytes{percentile.count / (last.size() < kMany ? 5 : 10)};\n",
     "  static_cast<void>(kMany);\n  return percentile;\n"),
    ("the_youngest_is_interrupted_whatever_others_take", "state_memory.cc",
     "std::pair(over(it), it.started)",
     "std::pair(over(it) - over(it), it.started)"),
    ("nothing_starts_while_others_use_the_cpus", "state_start.cc",
     "others_use_the_cpus() && one_runs_on_the_cpus()",
     "others_use_the_cpus() && (one_runs_on_the_cpus() || running_.empty())"),
    ("a_silent_keeper_is_asked_to_start", "state_start.cc",
     "  if (keeper_silent) return model::Cause::KeeperSilent;\n",
     ""),
    ("what_is_free_is_told_before_it_is_given", "scheduler.cc",
     "  if (look) state_->start_what_fits(event.at, out);\n"
     "  const bool reading",
     "  state_->tell_headroom(true, out);\n"
     "  if (look) state_->start_what_fits(event.at, out);\n"
     "  const bool reading"),
    ("a_gpu_on_which_another_user_computes_is_taken", "gpu_room.cc",
     "  if (!room.present || room.avoided || room.whole) return false;\n",
     "  if (!room.present || room.whole) return false;\n"),
    ("a_whole_gpu_is_not_the_emptiest", "gpu_room.cc",
     "      if (whole && others_of_a != others_of_b) return others_of_a < others_of_b;\n",
     "      static_cast<void>(whole && others_of_a != others_of_b);\n"),
    ("a_gpu_that_was_not_given_takes_memory_of_the_host", "state_tries.cc",
     "  return running.gpus.empty() ? Lack::GpuNotGiven : Lack::GpuMemory;\n",
     "  return running.gpus.empty() ? Lack::HostMemory : Lack::GpuMemory;\n"),
    ("loading_and_training_count_their_tries_together", "another_try.cc",
     "      add_one(stage == Stage::Load ? load_out_of_memory : train_out_of_memory);\n",
     "      static_cast<void>(stage);\n      add_one(load_out_of_memory);\n"
     "      add_one(train_out_of_memory);\n"),
    ("a_try_that_others_crowded_is_counted", "state_tries.cc",
     "  if (crowded) return Setback::Crowded;\n",
     "  return crowded ? Setback::OutOfMemory : Setback::OutOfMemory;\n"),
    ("the_last_try_shares_its_gpu", "state_gpus.cc",
     "  if (next.number >= next.most || had == Bytes{} || had >= most) {\n",
     "  static_cast<void>(next);\n  if (had == Bytes{} || had >= most) {\n"),
    ("nobody_is_taken_off_an_overfull_gpu", "state_gpus.cc",
     "    stop(*victim, StopCause::Crowds, at, out);\n",
     "    static_cast<void>(at), static_cast<void>(out);\n"),
    ("what_others_of_a_group_took_raises_nobody", "state_learning.cc",
     "std::max({taken, estimates_.seen(shape).gpu_memory, by_ratio});",
     "std::max({taken, estimates_.seen(shape).gpu_memory, by_ratio - by_ratio});"),
    ("a_number_that_may_grow_becomes_smaller", "state_learning.cc",
     "std::min(std::max(needed, shapes_[shape.value].terms.memory_least), most);",
     "std::min(needed, most);"),
    ("who_died_with_its_gpu_failed_itself", "state.cc",
     "  running.ended_for_gpu = true;\n",
     "  if (running.lost_gpu) return ending;\n"),
    ("a_gpu_that_blinks_is_given_at_once", "gpu_ledger.cc",
     "  if (at - *card.answers_since < steady_after_) return;\n",
     "  static_cast<void>(steady_after_);\n"),
    ("a_gpu_is_used_beyond_what_is_written", "sharers.cc",
     "  return utilization_ == 0 || utilization_ + task.utilization <= utilization_max;\n",
     "  return utilization_max > 0;\n"),
    ("who_is_there_already_puts_up_with_any_number", "sharers.cc",
     "crowds(task.max_per_gpu) || crowds(tasks_max())",
     "crowds(task.max_per_gpu)"),
    ("a_cap_leaves_out_what_others_were_promised", "state_caps.cc",
     "promise + std::max(Bytes{}, *left)",
     "promise + promise + std::max(Bytes{}, *left)"),
    ("who_runs_out_of_its_cap_blames_others", "state_tries.cc",
     "                       !is_near_its_cap(running, running.needed.gpu_memory) &&\n",
     ""),
    ("what_was_taken_of_a_cap_is_learned", "state.cc",
     "usage.gpu_capped ? Bytes{} : usage.gpu_memory_peak;",
     "usage.gpu_memory_peak;"),
    ("two_begin_at_once_on_a_tight_gpu", "startup_gate.cc",
     "std::max(cards_[i], request.gpu_memory)",
     "std::min(cards_[i], request.gpu_memory - request.gpu_memory)"),
    ("a_younger_one_begins_in_the_place_of_who_waits_to", "state_gate.cc",
     "  take(beside, request, gpus);\n",
     ""),
    ("a_late_gpu_is_given_to_who_does_not_see_it", "gpu_room.cc",
     "  if (request.listed_only && cards_[index].late) return false;\n",
     ""),
    ("what_a_resumed_task_had_reached_is_forgotten", "state_batches.cc",
     "    if (before.memory > terms.request.memory) reached_memory_[task] = before.memory;\n",
     ""),
    ("a_resumed_task_has_all_its_tries_again", "another_try.cc",
     "    return static_cast<std::uint8_t>(std::min<int>(gone, most));\n",
     "    return static_cast<std::uint8_t>(std::min<int>(gone, most) * 0);\n"),
    ("who_had_finished_before_a_resume_teaches_nobody", "state_batches.cc",
     "    estimates_.took_of_gpu(group_of(task), taken.gpu_memory_written, taken.gpu_memory);\n",
     ""),
    ("what_a_task_reaches_is_not_written_down", "state_tries.cc",
     "  if (grows) tell_reached(task, memory, out);\n",
     ""),
    ("what_is_learned_is_given_in_silence", "state_start.cc",
     "  tell_learned(shape, asked, request, out);\n",
     "  static_cast<void>(asked);\n"),
    ("priorities_are_forgotten", "waiting_room.cc",
     "  if (priority == 0) return;\n",
     "  if (priority <= 1000) return;\n"),
    ("cards_die_without_end", "another_try.cc",
     "      return one_of(kCardLostTriesMax, tries.cards_lost);\n",
     "      return one_of(kFaultlessTriesMax, tries.cards_lost);\n"),
]


def write(name, sources, out):
    file, old, new = next(bug[1:] for bug in BUGS if bug[0] == name)
    path = pathlib.Path(sources) / file
    text = path.read_text()
    if (times := text.count(old)) != 1:
        sys.exit(f"{path}: the text that '{name}' replaces stands there {times} times, "
                 f"it should stand there once:\n{old}")
    pathlib.Path(out).write_text(text.replace(old, new))


if sys.argv[1:2] == ["list"]:
    for bug in BUGS:
        print(bug[0], bug[1])
elif sys.argv[1:2] == ["write"] and len(sys.argv) == 5:
    write(*sys.argv[2:])
else:
    sys.exit(__doc__)

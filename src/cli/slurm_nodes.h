// The nodes that Slurm gives: those of the allocation that we are in, and what asks for others.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "run/granted_nodes.h"

namespace trainyard::cli {

/// How all of them are named at once where machines are named.
inline constexpr const char* kSlurm = "slurm";

/// Whether we are in an allocation.
bool inside_slurm();

/// Those of the allocation that we are in, as Slurm names them, and how much time is left of it. An
/// error where we are in none, or `scontrol` does not say.
Result<run::GrantedNodes> slurm_nodes();

/// What runs a program on one of them, with all that the allocation has there, beside the other
/// steps of the job; the words of the program follow. An empty allocation is the one that we are
/// in.
std::vector<std::string> words_of_srun(const std::string& node, const std::string& allocation);

/// What asks for an allocation with these options, says what it was granted (run/granted_nodes.h),
/// and holds it until its standard input ends. An error where salloc would hold nothing with one of
/// them, or it was meant to be quoted.
Result<std::vector<std::string>> words_of_salloc(const std::vector<std::string>& options);

/// What says "over" when nothing of an allocation runs any more. It says nothing as long as that is
/// not known, and never where Slurm may lose sight of a process that it should end: by control
/// groups alone (ProctrackType) it does not.
std::vector<std::string> words_that_see_its_end(const std::string& allocation);

}  // namespace trainyard::cli

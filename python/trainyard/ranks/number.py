"""Which rank a process is, by what its launcher has set."""
from ..client import Refused, _number

_SOURCES = (("TRAINYARD_RANK", "WORLD_SIZE", "LOCAL_RANK"), ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
            ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
            ("PMIX_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
            ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
            ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"))


def rank_number(environment):
    """(rank, local rank, ranks or None) by what the launcher has set."""
    several = ""
    for rank, ranks, local in _SOURCES:
        found = [_number(environment, name) for name in (rank, ranks, local)]
        if found[1] is not None and found[1] > 1 and not several:
            several = "%s is %d" % (ranks, found[1])
        if found[0] is None or (rank == "SLURM_PROCID" and (found[1] or 1) <= 1):
            continue
        return found[0], found[0] if found[2] is None else found[2], found[1]
    if several:
        raise Refused("%s, and nothing says which rank this is (RANK, OMPI_COMM_WORLD_RANK, "
                      "PMIX_RANK, PMI_RANK, SLURM_PROCID)" % several)
    return 0, 0, None

"""How soon ranks are there, hear a stop, are missed when they die, and are gone."""
import rows
from ranks_core import GROUP, PYTHON, middle, ours


def run(shop):
    rounds = shop.rounds(9)
    mib = shop.size(64, tiny=1)
    for rank, language, ready, abort, finalize in (("cpp", "C++", 10, 2, 30),
                                                   (PYTHON, "Python", 200, 10, 80)):
        def measured(*words):
            return 1e3 * middle([ours(shop, words[0], rank, *words[1:]) for _ in range(rounds)])
        where = f"4 ranks in {language}"
        yield rows.within(GROUP, f"ready: {where}", measured("ready"), "ms", ready)
        yield rows.within(GROUP, f"8 events and a task with {mib} MiB: {where}",
                          measured("task", mib, shop.size(9, tiny=3)), "ms", 10)
        yield rows.within(GROUP, f"an abort is seen: {where}",
                          measured("abort", shop.size(9, tiny=1)), "ms", abort)
        yield rows.within(GROUP, f"a death is answered: {where}", measured("death", 1), "ms", 10)
        held = shop.size(1024, tiny=2)
        yield rows.within(GROUP, f"the death of a rank that holds {held} MiB: {where}",
                          measured("death", held), "ms", 30)
        if rank == "cpp":
            small = [ours(shop, "death", rank, held, "small") for _ in range(rounds)]
            yield rows.told(GROUP, "the same, of memory in pages of 4 KiB", 1e3 * middle(small),
                            "ms", "the end of a bare process", 1e3 * middle(small, "bare"))
        yield rows.within(GROUP, f"finalize: {where}", measured("finalize"), "ms", finalize)

"""Values in commands for the shell: none is ever run, and each arrives as it is."""
import json
import subprocess
import unittest

from yard import YardTest

NASTY = ["it's \"x\" $HOME `id` \\", "$(touch HIT)", "`touch HIT`", "x; touch HIT", "'; touch HIT; '", "\"; touch HIT; \"",
         "E\ntouch HIT\nE\n", "x[$(touch HIT)]", "-n", "", " a  b ", "*", "".join(map(chr, range(1, 128))), "ä€"]


class Values(YardTest):
    def task(self, command, values):
        """Runs it with each of the values; says how the run ended. Nothing may have made a file HIT."""
        self.job("groups: [{name: g, matrix: {n: %s, include: %s}, tasks: [{id: '{n}', command: %s}]}]" % (
            json.dumps(list(range(len(values)))), json.dumps([{"n": n, "v": value} for n, value in enumerate(values)]),
            json.dumps(command)))
        done = self.trainyard("run", "job.yaml", "--new")
        self.assertEqual(list(self.directory.glob("**/HIT")), [])
        return done

    def test_reach_the_command_as_they_are_in_every_quoting(self):
        command = """cd {task_dir} && printf %s {v} >word && printf %s "<{v}>" >double && printf %s '<{v}>' >single &&
cat >document <<E
{v}
E
"""
        self.assertEqual(self.task(command, NASTY).returncode, 0)
        for n, value in enumerate(NASTY):
            said = {name: (self.directory / "runs/job/g" / str(n) / name).read_bytes().decode() for name in ("word", "double", "single", "document")}
            self.assertEqual(said, {"word": value, "double": "<%s>" % value, "single": "<%s>" % value, "document": value + "\n"})

    def test_become_several_words_where_the_text_splits_them(self):
        self.assertEqual(self.task("printf '<%s>' $(printf %s {v}) >{task_dir}/words", ["--lr 0.1", "-n 2"]).returncode, 0)
        self.assertEqual([self.text(f"runs/job/g/{n}/words") for n in (0, 1)], ["<--lr><0.1>", "<-n><2>"])

    def test_reach_every_rank(self):
        self.job("""groups: [{name: g, matrix: {v: ["it's"]}, tasks: [{id: x, ranks: 2, command: 'printf %s {v} > "{task_dir}/$RANK"'}]}]""")
        self.trainyard("run", "job.yaml", expect=0)
        for rank in ("0", "1"):
            self.assertEqual((self.directory / "runs/job/g/x" / rank).read_text(), "it's")

    def test_are_refused_in_what_is_read_once_more_with_the_cure(self):
        done = self.task("sh -c 'train {v}'", ["x"])
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"job.yaml:1:\d+: group 'g': task '\{n\}': command: '\{v\}' cannot be used in the text that 'sh -c' "
                                      r"reads as a command; pass it as an argument: sh -c '... \"\$1\"' sh \{v\}")
        self.assertFalse((self.directory / "runs").exists())

    def test_can_be_pasted_from_a_dry_run(self):
        command = "printf '<%s>' {v} \"{v}\" '{v}' $(printf %s x) # {v}"
        self.job("groups: [{name: g, matrix: {n: [1], include: [{n: 1, v: %s}]}, tasks: [{id: '{n}', command: %s}]}]" % (
            json.dumps(NASTY[0]), json.dumps(command)))
        (task,) = json.loads(self.trainyard("run", "job.yaml", "--dry-run", "--json", expect=0).stdout)["tasks"]
        self.assertEqual(task["command_values"], {"TRAINYARD_V1": NASTY[0]})
        self.assertNotIn(NASTY[0], task["command"][2])
        expected = "<%s>" % NASTY[0] * 3 + "<x>"
        pasted = subprocess.run(task["command_line"], shell=True, capture_output=True, text=True, check=True)
        self.assertEqual(pasted.stdout, expected)
        ran = subprocess.run(task["command"], env=task["command_values"], capture_output=True, text=True, check=True)
        self.assertEqual(ran.stdout, expected)


if __name__ == "__main__":
    unittest.main()

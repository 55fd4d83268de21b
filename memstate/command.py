"""The command ``memstate``. Without arguments, it starts MemState. ``hook`` and ``plugin`` connect a coding agent; all
other commands are those of ``manage.py``."""

import sys


def main() -> int:
    """Run the command of this process, and return its exit status."""
    match sys.argv[1:]:
        case ["hook", *arguments]:
            from memstate.hook import hook_run

            return hook_run(arguments)
        case ["plugin", *arguments]:
            from memstate.plugin import plugin_run

            return plugin_run(arguments)
        case arguments:
            if arguments[:1] in (["help"], ["--help"], ["-h"]):
                print("For coding agents: memstate hook EVENT, memstate plugin claude-code DIR.\n")
            from memstate_site.command import command_run

            return command_run(["memstate", *(arguments or ["up"])])

/**
 * Words to put in front of a command, so that each sync of the program's files takes `ms` milliseconds longer: `strace`
 * holds it up in the kernel. No other system call is slower, and the program keeps its process id.
 */
export function onSlowDisk(ms: number): string[] {
  return heldUp('fsync,fdatasync', ms)
}

/** The same for a folder that hardly answers: to rename one of these files takes `ms` milliseconds. */
export function onSlowFolder(files: readonly string[], ms: number): string[] {
  return [...heldUp('rename', ms), ...files.flatMap((file) => ['-P', file])]
}

function heldUp(calls: string, ms: number): string[] {
  const delay = `inject=${calls}:delay_enter=${ms * 1000}`
  // `-D`: the program is our child, and strace beside it. `--seccomp-bpf`: the kernel stops it at these calls only.
  return [
    'strace',
    '-D',
    '-f',
    '--seccomp-bpf',
    '-qq',
    '-o',
    '/dev/null',
    '-e',
    `trace=${calls}`,
    '-e',
    delay,
  ]
}

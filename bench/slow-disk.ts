/**
 * Words to put in front of a command, so that each sync of the program's files takes `ms` milliseconds longer: `strace`
 * holds it up in the kernel. No other system call is slower, and the program keeps its process id.
 */
export function onSlowDisk(ms: number): string[] {
  const calls = 'fsync,fdatasync'
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

import { answer } from './answer.ts'
import { startCounting, takeCounts } from './coverage.ts'

/*
 * Node loads this file before programs that know nothing of the bench (`askable`). The bench can then ask for their
 * usage and function counts.
 */
answer({ startCounting, takeCounts })
process.channel?.unref()
// tsx, which loads this file, turns source maps on. The first stack of an error would then stop a bundle for a second, to
// read the map of all its code.
process.setSourceMapsEnabled(false)

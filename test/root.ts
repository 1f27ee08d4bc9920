import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** The project folder, with a slash at its end. The search goes upwards, because compiled tests lie deeper. */
export const root = `${folderWith('package.json', dirname(fileURLToPath(import.meta.url)))}/`

/** Whether the tests run compiled, as `npm test` does. */
export const isCompiled = import.meta.url.endsWith('.js')

/** The path of a file of the project, as it lies in the repository. */
export function projectFile(path: string): string {
  return join(root, path)
}

function folderWith(name: string, folder: string): string {
  if (existsSync(join(folder, name))) return folder
  const above = dirname(folder)
  if (above === folder) throw new Error(`no ${name} above the tests`)
  return folderWith(name, above)
}

/** The command that runs a program of the project (`bench/bench.ts`): compiled if the calling test is compiled. */
export function commandOf(program: string): string[] {
  if (!isCompiled) return [process.execPath, `--import=${import.meta.resolve('tsx')}`, projectFile(program)]
  return [process.execPath, projectFile(`.compiled/${program.replace(/ts$/, 'js')}`)]
}

/**
 * The command that evaluates the text of a module, which is its next word. `moduleOf` says how that text imports a file of
 * the project.
 */
export const evaluate = [
  process.execPath,
  ...(isCompiled ? [] : [`--import=${import.meta.resolve('tsx')}`]),
  '--input-type=module',
  '--eval',
] as const

/** The specifier of a file of the project, in quotes: compiled if the calling test is compiled. */
export function moduleOf(path: string): string {
  const file = isCompiled ? `.compiled/${path.replace(/ts$/, 'js')}` : path
  return JSON.stringify(pathToFileURL(projectFile(file)).href)
}

/** The command that runs `hubctl`: as it is installed, if the calling test is compiled. That are few files, which load fast. */
export const hubctlCommand = isCompiled
  ? [process.execPath, projectFile('.compiled/hubctl.js')]
  : commandOf('cli/hubctl.ts')

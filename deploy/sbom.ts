import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** What this file uses of a bill of materials in the form of CycloneDX. */
interface Sbom {
  serialNumber?: string
  metadata: { timestamp?: string; component: { name: string; 'bom-ref': string } }
  components: { name: string; version: string; 'bom-ref': string; scope?: string; properties?: unknown }[]
  dependencies: { ref: string; dependsOn: string[] }[]
}

/**
 * The bill of materials of a package, JSON in the form of CycloneDX 1.5: the packages in `folders`, and nothing that only
 * builds or tests the hub. npm lists all that is installed in `project`. The same sources give the same text.
 */
export async function sbomOf(folders: Iterable<string>, project: string): Promise<string> {
  const args = ['sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application']
  const { stdout } = await promisify(execFile)('npm', args, { cwd: project, maxBuffer: 64 * 1024 * 1024 })
  const all: Sbom = JSON.parse(stdout)
  const shipped = new Set(await Promise.all([...folders].map(nameAndVersion)))
  const components = all.components.filter(({ name, version }) => shipped.has(`${name}@${version}`))
  const { component } = all.metadata
  const refs = new Set([component['bom-ref'], ...components.map((one) => one['bom-ref'])])
  const { name } = JSON.parse(await readFile(join(project, 'package.json'), 'utf8'))
  const { serialNumber: _random, ...rest } = all
  const { timestamp: _now, ...metadata } = all.metadata
  const sbom: Sbom = {
    ...rest,
    // npm names the folder.
    metadata: { ...metadata, component: { ...component, name } },
    // npm says of bundled packages that only development needs them, because package.json does.
    components: components.map((one) => ({ ...one, scope: 'required', properties: [] })),
    dependencies: all.dependencies
      .filter(({ ref }) => refs.has(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((other) => refs.has(other)) })),
  }
  return `${JSON.stringify(sbom, null, 2)}\n`
}

async function nameAndVersion(folder: string): Promise<string> {
  const { name, version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
  return `${name}@${version}`
}

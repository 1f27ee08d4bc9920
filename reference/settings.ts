import { groups, isFileOnly, type Setting, settings, variableName } from '../config/settings.ts'
import { code, type ReferencePage, table } from './page.ts'

/** All settings of a node, by group. */
export function settingsPage(): ReferencePage {
  const rows = Object.entries<Setting>(settings)
  const sections = Object.entries(groups).map(([group, title]) => {
    const own = rows.filter(([, setting]) => setting.group === group).map(rowOf)
    return `## ${title}\n\n${table(['setting', 'default', 'values', ''], own)}`
  })
  return {
    name: 'settings',
    title: 'Settings',
    about: 'What a node can be told by its environment, or by the JSON file that `HUB_CONFIG` names.',
    text: [
      `[The later of defaults, file and environment wins](operators.md#configuration). In the file the keys are in camel
case and without the prefix: \`HUB_MQTT_PORT\` is \`mqttPort\`. What stands here in camel case is in the file only.
\`hubctl config\` shows the settings in effect, secrets masked.`,
      ...sections,
    ].join('\n\n'),
  }
}

function rowOf([name, setting]: [string, Setting]): string[] {
  const { schema, defaultText, does } = setting
  const values = 'description' in schema ? String(schema.description) : ''
  const known = setting.default === undefined ? 'unset' : code(String(setting.default))
  return [code(isFileOnly(setting) ? name : variableName(name)), defaultText ?? known, values, does]
}

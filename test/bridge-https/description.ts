import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'

/** A JSON object: a JSON Schema or another part of an OpenAPI document. */
export type Json = Record<string, unknown>

/** One operation of an OpenAPI document. */
export interface Operation {
  method: string
  /** Path template, such as `/topics/{topicName}`. */
  path: string
  parameters: { name: string; schema: Json }[]
  /** Schema of the JSON body, if there is one. */
  body: Json | undefined
  /** Whether the operation requires a bearer token. */
  isGuarded: boolean
  statuses: string[]
}

/** Reads an OpenAPI document and checks answers against it. */
export function readDescription(document: Json) {
  const { components, paths } = document
  const text = JSON.stringify({ components, paths })
  const known = readers.get(text) ?? createReader({ components, paths })
  readers.set(text, known)
  return { document, ...known }
}

/** The nodes of a test describe the same: their schemas are compiled once. */
const readers = new Map<string, ReturnType<typeof createReader>>()

function createReader(document: Json) {
  // Whether the schemas are valid is asked once, in `test/soak/bridge-https/described.test.ts`.
  const ajv = new Ajv2020.default({ strict: false, allErrors: true, validateSchema: false })
  formats.default(ajv)
  ajv.addSchema({ $id: 'openapi', components: document.components })
  const validators = new Map<string, ValidateFunction>()
  const operations = Object.entries(object(document.paths)).flatMap(([path, item]) =>
    Object.entries(object(item)).map(([method, operation]) =>
      read(method.toUpperCase(), path, object(operation)),
    ),
  )

  return {
    operations,

    /** Why an answer does not match the document. Undefined: the answer matches. */
    problemOf(answer: {
      method: string
      path: string
      status: number
      type: string
      body: unknown
    }): string | undefined {
      const method = answer.method === 'HEAD' ? 'GET' : answer.method
      const operation = operations.find((one) => one.method === method && matches(one.path, answer.path))
      // Every route is described, so any other request must get 404.
      if (!operation) return answer.status === 404 ? undefined : `${answer.status} is not described at all`
      const response = object(object(operationOf(operation).responses)[answer.status])
      if (Object.keys(response).length === 0) return `status ${answer.status} is not described`
      const [type = '', media] = Object.entries(object(response.content))[0] ?? []
      if (answer.method === 'HEAD') return undefined
      if (!answer.type.startsWith(type)) return `${answer.type} instead of ${type}`
      const schema = object(media).schema
      if (schema === undefined) return undefined
      const validate = validatorOf(`${method} ${operation.path} ${answer.status}`, object(schema))
      return validate(answer.body) ? undefined : ajv.errorsText(validate.errors)
    },

    /** Whether `value` matches the schema of the operation's body. */
    isDescribed: ({ method, path, body }: Operation, value: unknown): boolean =>
      body === undefined || validatorOf(`${method} ${path} body`, body)(value) === true,
  }

  function validatorOf(key: string, schema: Json): ValidateFunction {
    const known = validators.get(key) ?? ajv.compile(absolute(schema))
    validators.set(key, known)
    return known
  }

  function operationOf({ method, path }: Operation): Json {
    return object(object(object(document.paths)[path])[method.toLowerCase()])
  }
}

function read(method: string, path: string, operation: Json): Operation {
  const content = object(object(object(operation.requestBody).content)['application/json'])
  const parameters = Array.isArray(operation.parameters) ? operation.parameters : []
  return {
    method,
    path,
    parameters: parameters.map(({ name, schema }) => ({ name: String(name), schema: object(schema) })),
    body: content.schema === undefined ? undefined : object(content.schema),
    isGuarded: Array.isArray(operation.security) && operation.security.length > 0 && !isOpenToAll(operation),
    statuses: Object.keys(object(operation.responses)),
  }
}

/** An empty alternative in `security` admits requests without a token. */
function isOpenToAll({ security }: Json): boolean {
  return [security].flat().some((way) => Object.keys(object(way)).length === 0)
}

function absolute(schema: Json): Json {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"openapi#/components'))
}

function matches(template: string, path: string): boolean {
  const pattern = template.replace(/[.]/g, '\\.').replace(/\{\w+\}/g, '[^/]+')
  return new RegExp(`^${pattern}$`).test(path.split('?')[0] ?? '')
}

/** A copy of the value if it is an object, otherwise an empty object. */
export function object(value: unknown): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}

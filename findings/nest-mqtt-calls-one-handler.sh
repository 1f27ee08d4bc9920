#!/usr/bin/env bash
# Software: nest-mqtt 0.2.0 (npm), on NestJS 8.4.7 and mqtt.js 3.0.0; mqtt-packet 9.0.2 answers as a broker
# Behaviour: Of several handlers whose filters match a topic it calls one: the one whose SUBACK came first, so mostly the one that stands
#   first in the class. The others never hear of it, and nothing says so. It asks for QoS 0, and tells no denied filter.
# Seen: 2026-11-30, an event of radio/…/control
#   radio/# before radio/+/control: everything
#   radio/+/control before radio/#: control
#   denied: connected, no error
# Hub: an announcement that is never shown, because another handler logs everything: docs/clients/others.md
# Source: nest-mqtt 0.2.0, dist/mqtt.explorer.js, getSubscriber and subscribe
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts nest-mqtt@0.2.0 @nestjs/common@8.4.7 @nestjs/core@8.4.7 mqtt@3.0.0 \
  reflect-metadata@0.1.14 rxjs@7.8.2 mqtt-packet@9.0.2

cat >look.mjs <<'JS'
import 'reflect-metadata'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import common from '@nestjs/common'
import core from '@nestjs/core'
import { generate, parser } from 'mqtt-packet'
import nestMqtt from 'nest-mqtt'

const { Injectable, Module } = common
const { MqttModule, Subscribe } = nestMqtt

/** A broker that denies each filter, or sends one event when both handlers have subscribed. */
async function openBroker(isDenying) {
  let subscribed = 0
  const server = createServer((socket) => {
    const parse = parser()
    socket.on('error', () => {})
    socket.on('data', (bytes) => parse.parse(bytes))
    parse.on('packet', ({ cmd, messageId, subscriptions }) => {
      if (cmd === 'connect') socket.write(generate({ cmd: 'connack', returnCode: 0, sessionPresent: false }))
      if (cmd !== 'subscribe') return
      const granted = subscriptions.map(({ qos }) => (isDenying ? 128 : qos))
      socket.write(generate({ cmd: 'suback', messageId, granted }))
      const topic = 'radio/urn:org:permanent-livestream:1/control'
      if (++subscribed === 2 && !isDenying) socket.write(generate({ cmd: 'publish', topic, qos: 0, payload: '{}' }))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server.address().port
}

/** Handlers of these names and filters; returns who was called, and the errors that were told. */
async function look(filters, isDenying = false) {
  const called = []
  const errors = []
  class Handlers {}
  for (const [name, filter] of filters) {
    Handlers.prototype[name] = () => called.push(name)
    Subscribe(filter)(Handlers.prototype, name, Object.getOwnPropertyDescriptor(Handlers.prototype, name))
  }
  Injectable()(Handlers)
  class Root {}
  const port = await openBroker(isDenying)
  const logger = { log() {}, warn() {}, error: (text) => errors.push(text), debug() {}, verbose() {} }
  const login = { username: 'sub-house', password: 'secret', protocolVersion: 4 }
  Module({ imports: [MqttModule.forRoot({ host: '127.0.0.1', port, ...login })], providers: [Handlers] })(Root)
  await core.NestFactory.createApplicationContext(Root, { logger })
  await pause(3000)
  return isDenying ? (errors.length ? errors.join() : 'connected, no error') : called.join(', ')
}

const everything = ['everything', 'radio/#']
const control = ['control', 'radio/+/control']
console.log(`radio/# before radio/+/control: ${await look([everything, control])}`)
console.log(`radio/+/control before radio/#: ${await look([control, everything])}`)
console.log(`denied: ${await look([control], true)}`)
process.exit()
JS
timeout 50 node look.mjs | tee seen
diff seen - <<'SEEN'
radio/# before radio/+/control: everything
radio/+/control before radio/#: control
denied: connected, no error
SEEN
echo 'as described'

// Every test runs with both major versions of the SDK, against a real gateway (see ../run.sh).
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as six from 'openai'
import * as seven from 'openai7'

const { INTERLOCK_URL: baseURL, INTERLOCK_KEY: apiKey, PROVIDERS_CONTROL: control } = process.env
const messages = [{ role: 'user', content: 'Hello?' }]
const tools = [{ type: 'function', function: { name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' }, unit: { type: 'string' } }, required: ['city'] } } }]
const schema = { type: 'object', properties: { city: { type: 'string' }, celsius: { type: 'number' } }, required: ['city', 'celsius'], additionalProperties: false }

const counts = async model => (await fetch(`${control}/calls?model=${model}`)).json()

async function collect(stream, pick) {
  let text = ''
  for await (const e of stream) text += pick(e) ?? ''
  return text
}

for (const [name, sdk] of [['openai 6', six], ['openai 7', seven]]) {
  const options = { baseURL, apiKey, timeout: 20_000 }
  const client = new sdk.OpenAI({ ...options, maxRetries: 0 })
  const it = (what, f) => test(`${name}: ${what}`, { timeout: 30_000 }, f)
  const content = c => c.choices[0]?.delta?.content
  const delta = e => (e.type === 'response.output_text.delta' ? e.delta : '')
  const chat = (model, more = {}, o) => client.chat.completions.create({ model, messages, ...more }, o)

  // fails asserts that p rejects with the SDK's own class, the status and the code.
  const fails = async (p, type, status, code) => {
    const e = await p.then(() => assert.fail('no error was raised'), e => e)
    assert.ok(e instanceof type, `${e?.constructor?.name}: ${e?.message}`)
    assert.equal(e.status, status)
    assert.equal(e.code, code)
    return e
  }

  it('chat', async () => {
    const { data, response } = await chat('gpt-4o').withResponse()
    assert.equal(data.choices[0].message.content, 'Hello from the provider.')
    assert.equal(data.usage.total_tokens, 13)
    assert.match(response.headers.get('x-request-id'), /^req_/)
    assert.equal(response.headers.get('interlock-cause'), 'initial')
    assert.equal(response.headers.get('interlock-route'), 'primary/main')
  })

  it('chat, streamed', async () => {
    assert.equal(await collect(await chat('gpt-4o', { stream: true }), content), 'Hello from the provider.')
    let usage
    for await (const c of await chat('gpt-4o', { stream: true, stream_options: { include_usage: true } })) usage = c.usage ?? usage
    assert.equal(usage.total_tokens, 13)
  })

  it('tool calls, streamed and not', async () => {
    const whole = (await chat('gpt-4o', { tools })).choices[0]
    const streamed = (await client.chat.completions.stream({ model: 'gpt-4o', messages, tools }).finalChatCompletion()).choices[0]
    for (const choice of [whole, streamed]) {
      assert.equal(choice.finish_reason, 'tool_calls')
      const call = choice.message.tool_calls[0]
      assert.equal(call.id, 'call_1')
      assert.equal(call.function.name, 'get_weather')
      assert.deepEqual(JSON.parse(call.function.arguments), { city: 'Seoul', unit: 'celsius' })
    }
  })

  it('structured output', async () => {
    const response_format = { type: 'json_schema', json_schema: { name: 'weather', strict: true, schema } }
    const c = await client.chat.completions.parse({ model: 'gpt-4o', messages, response_format })
    assert.deepEqual(JSON.parse(c.choices[0].message.content), { city: 'Seoul', celsius: 21 })
  })

  it('responses, streamed and not', async () => {
    const r = await client.responses.create({ model: 'gpt-4o', input: 'Hello?' })
    assert.equal(r.output_text, 'Hello from the provider.')
    assert.equal(await collect(await client.responses.create({ model: 'gpt-4o', input: 'Hello?', stream: true }), delta), 'Hello from the provider.')
    const final = await client.responses.stream({ model: 'gpt-4o', input: 'Hello?' }).finalResponse()
    assert.equal(final.status, 'completed')
  })

  it('embeddings: base64, as the SDK asks by itself, and float', async () => {
    const asked = { model: 'text-embedding-3-small', input: 'Hello?' }
    const usual = (await client.embeddings.create(asked)).data[0].embedding
    const float = (await client.embeddings.create({ ...asked, encoding_format: 'float' })).data[0].embedding
    assert.equal(usual.length, 8)
    usual.forEach((x, i) => assert.ok(Math.abs(x - float[i]) < 1e-6))
  })

  it('moderations', async () => {
    const m = await client.moderations.create({ model: 'omni-moderation-latest', input: 'Hello?' })
    assert.equal(m.results[0].flagged, false)
  })

  it('models, the alias among them', async () => {
    const ids = []
    for await (const m of client.models.list()) ids.push(m.id)
    assert.ok(ids.includes('gpt-4o') && ids.includes('assistant'), ids.join())
    assert.equal((await client.models.retrieve('assistant')).id, 'assistant')
    await fails(client.models.retrieve('nobody-serves-this'), sdk.NotFoundError, 404, 'model_not_found')
  })

  it('errors are of the class that the SDK has for them', async () => {
    const stranger = new sdk.OpenAI({ ...options, apiKey: 'ilk-nobody-0123456789' })
    await fails(stranger.chat.completions.create({ model: 'gpt-4o', messages }), sdk.AuthenticationError, 401, 'invalid_api_key')
    await fails(chat('gpt-4o', {}, { headers: { 'interlock-budget': 'nobodys' } }), sdk.PermissionDeniedError, 403, 'permission_denied')
    await fails(chat('nobody-serves-this'), sdk.NotFoundError, 404, 'model_not_found')
    const e = await fails(chat('gpt-4o', { messages: [] }), sdk.BadRequestError, 400, 'invalid_request')
    assert.equal(e.param, 'messages')
    await fails(chat('gpt-4o', { messages: [{ role: 'user', content: 'x'.repeat(70_000) }] }), sdk.APIError, 413, 'request_too_large')
    await fails(chat('down'), sdk.InternalServerError, 502, 'routes_exhausted')
    await fails(chat('silent', {}, { headers: { 'interlock-deadline': '400' } }), sdk.InternalServerError, 504, 'deadline_exceeded')
    // The first call with a dead credential takes its account out; then no route is left.
    await chat('unpaid').catch(() => {})
    await fails(chat('unpaid'), sdk.InternalServerError, 503, 'no_eligible_route')
  })

  it('429 says when to come again', async () => {
    const e = await fails(chat('limited'), sdk.RateLimitError, 429, 'routes_exhausted')
    const seconds = Number(e.headers.get('retry-after'))
    assert.ok(seconds >= 1 && seconds <= 7, `retry-after: ${seconds}`)
    assert.ok(Number(e.headers.get('retry-after-ms')) > 0)
    assert.equal(e.headers.get('x-should-retry'), 'true')
  })

  it('leaving a stream closes the call to the provider', async () => {
    const before = await counts('halting')
    const stream = await chat('halting', { stream: true })
    for await (const c of stream) if (content(c)) break
    stream.controller.abort()
    const end = Date.now() + 10_000
    let now = before
    while (now.left === before.left && Date.now() < end) now = await counts('halting')
    assert.equal(now.left, before.left + 1)
    assert.equal(now.calls, before.calls + 1)
  })

  for (const model of ['cut', 'short']) {
    it(`a partial stream raises: ${model}`, async () => {
      const raised = async f => {
        let got = ''
        const e = await f(t => { got += t ?? '' }).then(() => assert.fail('the stream ended silently'), e => e)
        assert.ok(e instanceof sdk.OpenAIError, `${e?.constructor?.name}: ${e?.message}`)
        assert.equal(got, 'These words are already out')
        return e
      }
      const before = await counts(model)
      const e = await raised(async out => { for await (const c of await chat(model, { stream: true })) out(content(c)) })
      assert.equal(e.code, 'partial_stream')
      await raised(async out => {
        const s = client.chat.completions.stream({ model, messages })
        s.on('content', out)
        await s.finalChatCompletion()
      })
      const asked = { model, input: 'Hello?' }
      await raised(async out => { for await (const c of await client.responses.create({ ...asked, stream: true })) out(delta(c)) })
      await raised(async out => {
        const s = client.responses.stream(asked)
        s.on('response.output_text.delta', e => out(e.delta))
        await s.finalResponse()
      })
      assert.equal((await counts(model)).calls, before.calls + 4)
    })
  }

  it('heartbeats do not disturb', async () => {
    const { data, response } = await chat('late', { stream: true }).withResponse()
    assert.equal(response.status, 200)
    assert.equal(await collect(data, content), 'Late, but whole.')
    const raw = await fetch(`${baseURL}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'late', messages, stream: true }),
    })
    assert.match(await raw.text(), /^:/, 'there was a heartbeat to disturb')
  })

  it('a substitution is disclosed', async () => {
    const { data, response } = await chat('assistant').withResponse()
    assert.equal(response.headers.get('interlock-cause'), 'model_substitution')
    assert.equal(response.headers.get('interlock-requested-model'), 'gpt-4.1-mini')
    assert.equal(response.headers.get('interlock-model'), 'gpt-4o-mini')
    assert.match(response.headers.get('interlock-substitution'), /^approved; reason=/)
    assert.equal(data.model, 'gpt-4o-mini')
    assert.equal(data.interlock.cause, 'model_substitution')
    await fails(chat('assistant', {}, { headers: { 'interlock-substitution': 'deny' } }), sdk.InternalServerError, 502, 'routes_exhausted')
  })

  it('in an outage the SDK\'s own retries add no call', async () => {
    const calls = async c => {
      const before = (await counts('down')).calls
      await fails(c.chat.completions.create({ model: 'down', messages }), sdk.InternalServerError, 502, 'routes_exhausted')
      return (await counts('down')).calls - before
    }
    const off = await calls(client)
    assert.equal(off, 2) // the budget's max_attempts_per_route
    assert.equal(await calls(new sdk.OpenAI(options)), off) // x-should-retry: false
  })
}

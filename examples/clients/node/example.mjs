import OpenAI from 'openai'

const client = new OpenAI({
  baseURL: process.env.INTERLOCK_URL ?? 'http://127.0.0.1:8080/v1',
  apiKey: process.env.INTERLOCK_KEY,
  // The gateway recovers where it is safe. An SDK's own retries multiply attempts outside the policy.
  maxRetries: 0,
})

const stream = await client.chat.completions.create({
  model: 'gpt-4o',
  messages: [{ role: 'user', content: 'Say hello.' }],
  stream: true,
})
// A stream that breaks midway throws here: code "partial_stream". What came before is not the whole answer.
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content ?? '')
console.log()

import os

from openai import OpenAI

client = OpenAI(
    base_url=os.environ.get("INTERLOCK_URL", "http://127.0.0.1:8080/v1"),
    api_key=os.environ["INTERLOCK_KEY"],
    # The gateway recovers where it is safe. An SDK's own retries multiply attempts outside the policy.
    max_retries=0,
)

stream = client.chat.completions.create(
    model="gpt-4o",
    messages=[{"role": "user", "content": "Say hello."}],
    stream=True,
)
# A stream that breaks midway raises here, with the code "partial_stream": what came before is
# not the whole answer.
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
print()

"""The five texts behind the first mechanisms, by author, title and a translation of the title.

`docs/evidence/errata.md` says where to find each text, and lists their errors. Titles are quoted as printed. The two
blog posts have no title in our copies, so a heading of each replaces it.
"""

from __future__ import annotations

from typing import Final

UNARY_ENCODING: Final = 'trvoid, "단항 인코딩" (Unary encoding), blog post DP-15, 2025'
BOUNDED_STAIRCASE: Final = (
    '김준영, 박재민, 이시현 (Kim, Park and Lee), "국소 차등 개인정보 보호를 위한 유계 계단 메커니즘에 관한 연구" '
    "(A Study on Bounded Staircase Mechanism for Local Differential Privacy)"
)
CASE_STUDY: Final = (
    '정수용, 홍도원, 서창호 (Jeong, Hong and Seo), "로컬 차분 프라이버시 실제 적용 사례연구 : 프라이버시 보존형 '
    '설문조사" (Case Study on Local Differential Privacy in Practice : Privacy Preserving Survey), 2020'
)
RANDOM_SUBSTITUTION: Final = (
    '강주성, 이창우, 홍도원 (Kang, Lee and Hong), "랜덤대치 기반 프라이버시 보호 기법의 정확성 개선 알고리즘" (An '
    "Algorithm for Improving the Accuracy of Privacy-Preserving Technique Based on Random Substitutions), 2009"
)
GAUSSIAN: Final = 'FedTensor, "프라이버시 손실 관계 수식 유도" (Deriving the relation of the privacy loss), blog post'
